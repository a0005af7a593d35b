package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/auth"
)

// put replaces the keys of an installation, in one step.
func put(t *testing.T, file string, keys ...string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("auth:\n  api_keys:\n")
	for _, k := range keys {
		_, _ = fmt.Fprintf(&b, "    - {id: %s, sha256: %s, tenant: acme}\n", k, auth.HashKey(k))
	}
	require.NoError(t, os.WriteFile(file+".new", []byte(b.String()), 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

// as opens a socket with a key.
func (i *installation) as(t *testing.T, key string) (*websocket.Conn, error) {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), i.ws, &websocket.DialOptions{ //nolint:bodyclose // Dial closes it
		HTTPHeader: http.Header{"X-Api-Key": {key}},
	})
	if err == nil {
		t.Cleanup(func() { _ = c.CloseNow() })
	}
	return c, err
}

// closes reads until the socket is closed and returns what was said and the code.
func closes(t *testing.T, c *websocket.Conn) (string, websocket.StatusCode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	var said strings.Builder
	for {
		_, text, err := c.Read(ctx)
		if err != nil {
			return said.String(), websocket.CloseStatus(err)
		}
		said.Write(text)
	}
}

// lives pings, and reads meanwhile, because only a reader gets the pong.
func lives(t *testing.T, c *websocket.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	go func() {
		for {
			if _, _, err := c.Read(ctx); err != nil {
				return
			}
		}
	}()
	require.NoError(t, c.Ping(ctx), "the processes still use the old one")
}

// metric returns the line of /metrics that begins with the name.
func (i *installation) metric(t testing.TB, name string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+i.telemetry+"/metrics", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	for line := range strings.Lines(string(body)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// Keys change while a process runs: who came with a withdrawn one is sent away, the others
// notice nothing, and a broken file withdraws nothing.
func TestKeysChangeWithoutARestart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys.yaml")
	put(t, file, "leaves", "stays")
	i := start(t, "--config", file)
	leaves, err := i.as(t, "leaves")
	require.NoError(t, err)
	stays, err := i.as(t, "stays")
	require.NoError(t, err)
	_, err = i.as(t, "comes")
	require.Error(t, err)

	put(t, file, "stays", "comes")
	began := time.Now()
	said, code := closes(t, leaves)
	t.Logf("closed %s after its key was taken out of the file", time.Since(began).Round(time.Millisecond))
	require.EqualValues(t, 4401, code)
	require.Contains(t, said, "UNAUTHENTICATED")
	_, err = i.as(t, "leaves")
	require.Error(t, err)
	_, err = i.as(t, "comes")
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(file, []byte("auth: {api_keys: ["), 0o600))
	require.Eventually(t, func() bool { return i.metric(t, "waggle_config_refused") == "1" }, maxWait, 50*time.Millisecond)
	_, err = i.as(t, "comes")
	require.NoError(t, err)
	lives(t, stays)

	put(t, file, "stays")
	require.NoError(t, i.cmd.Process.Signal(syscall.SIGHUP))
	require.Eventually(t, func() bool { return i.metric(t, "waggle_config_refused") == "0" }, maxWait, 50*time.Millisecond)
	_, err = i.as(t, "comes")
	require.Error(t, err)
	require.NoError(t, i.end(t, syscall.SIGTERM))
	require.Contains(t, i.errors.String(), "configuration reload requested by SIGHUP")
}
