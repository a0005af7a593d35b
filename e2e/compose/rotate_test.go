//go:build compose

package compose_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// withdrawn is how long a key may still be good after it has been taken out.
const withdrawn = 10 * time.Second

// TestALeakedKeyIsRefused: the file with the keys of clients is replaced in the way that
// editors and careful people do it, by renaming another one over it. All gateways see it
// through their mounts: the new key is taken, the leaked one refused, and its socket
// closed, while the sockets of other keys stay.
func TestALeakedKeyIsRefused(t *testing.T) {
	f := start(t, tools(t)[0])
	leaked, stays := "leaked-0123456789abcdef0123456789abcdef", "stays-0123456789abcdef0123456789abcdef"
	f.clients(stays, leaked)
	process.Eventually(t, "all gateways take the new keys", func() bool { return f.all(leaked, true) && f.all(stays, true) })
	bad, good := f.socket(leaked), f.socket(stays)

	began := time.Now()
	f.clients(stays)
	ctx, cancel := context.WithTimeout(t.Context(), withdrawn)
	defer cancel()
	_, _, err := bad.Read(ctx)
	for err == nil { // earlier frames
		_, _, err = bad.Read(ctx)
	}
	require.EqualValues(t, 4401, websocket.CloseStatus(err), "the socket of the leaked key: %v", err)
	for !f.all(leaked, false) {
		require.Less(t, time.Since(began), withdrawn, "the leaked key is still good")
	}
	t.Logf("refused %.1f s after it was taken out", time.Since(began).Seconds())
	require.True(t, f.all(stays, true))
	require.NoError(t, good.Ping(good.CloseRead(t.Context())), "the socket of the other key")
}

// clients puts another file in the place of that with the keys of clients.
func (f *fleet) clients(keys ...string) {
	f.t.Helper()
	text := "auth:\n  api_keys:\n"
	for i, key := range keys {
		text += fmt.Sprintf("    - {id: key-%d-%.5s, sha256: %x, tenant: default, roles: [user]}\n", i, key, sha256.Sum256([]byte(key)))
	}
	name := filepath.Join(f.dir, "secrets", "clients", "gateway.yaml")
	require.NoError(f.t, os.WriteFile(name+".new", []byte(text), 0o644))
	require.NoError(f.t, os.Chmod(name+".new", 0o644))
	require.NoError(f.t, os.Rename(name+".new", name))
}

// all reports whether several calls in a row find the key good, or all of them refused:
// the load balancer takes turns where gateways have equally much to do.
func (f *fleet) all(key string, good bool) bool {
	f.t.Helper()
	for range 8 {
		if f.takes(key) != good {
			return false
		}
	}
	return true
}

func (f *fleet) takes(key string) bool {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, "http://"+f.addr+"/api/v1/sessions", nil)
	require.NoError(f.t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(f.t, err)
	require.NoError(f.t, resp.Body.Close())
	return resp.StatusCode == http.StatusOK
}

func (f *fleet) socket(key string) *websocket.Conn {
	f.t.Helper()
	ctx, cancel := process.Within(process.MaxWait)
	defer cancel()
	c, resp, err := websocket.Dial(ctx, f.url("/ws"), &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + key}}})
	require.NoError(f.t, err)
	if resp.Body != nil {
		_ = resp.Body.Close()
	}
	f.t.Cleanup(func() { _ = c.CloseNow() })
	return c
}
