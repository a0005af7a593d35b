package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
)

var healthLine = regexp.MustCompile(`http://([0-9.:]+)/readyz`)

// beside starts another process with a role beside the installation, and returns when it is ready.
func (i *installation) beside(t *testing.T, role string) {
	t.Helper()
	c := exec.Command("waggle", "serve", "--role", role, "--addr", "127.0.0.1:0", "--telemetry-addr", "off", "--nats", i.nats, "--data", "data")
	said := &output{}
	c.Dir, c.Env, c.Stderr = i.dir, i.env(), said
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	at, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := healthLine.FindStringSubmatch(lines.Text()); m != nil {
				at <- m[1]
			} else if m := chatLine.FindStringSubmatch(lines.Text()); m != nil {
				at <- m[2]
			}
		}
		_ = c.Wait()
	}()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGKILL)
		<-ended
	})
	select {
	case addr := <-at:
		status, body := i.request(t, http.MethodGet, "http://"+addr+"/readyz", "")
		require.Equal(t, http.StatusOK, status, body)
	case <-ended:
		require.Fail(t, "the process has ended", said.String())
	case <-time.After(maxWait):
		_ = c.Process.Signal(syscall.SIGKILL)
		<-ended
		require.Fail(t, "the process is never ready", said.String())
	}
}

// request sends a request and returns the answer.
func (i *installation) request(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

// A second process takes part of the work, so every kind of request is made several times.
func TestAProcessBesideUpTakesItsPart(t *testing.T) {
	t.Parallel()
	for _, role := range config.Roles {
		t.Run(role, func(t *testing.T) {
			i := start(t)
			i.beside(t, role)
			for range 4 {
				answer, err := i.run(t, `bin/waggle chat "what is 2+3?"`)
				require.NoError(t, err, answer)
				require.Contains(t, answer, "5")
				status, body := i.request(t, http.MethodPost, "http://"+i.addr+"/api/v1/sessions", "{}")
				require.Equal(t, http.StatusCreated, status, body)
				session := regexp.MustCompile(`"(?:session_)?id":"([^"]+)"`).FindStringSubmatch(body)
				require.NotNil(t, session, body)
				status, body = i.request(t, http.MethodPost, "http://"+i.addr+"/api/v1/sessions/"+session[1]+"/messages", `{"content":"hello"}`)
				require.Equal(t, http.StatusAccepted, status, body)
				status, body = i.request(t, http.MethodGet, "http://"+i.addr+"/api/v1/sessions/"+session[1], "")
				require.Equal(t, http.StatusOK, status, body)
				status, body = i.request(t, http.MethodPost, "http://"+i.addr+"/api/v1/teams", `{"name":"adders","coordinator":"a","members":[{"name":"a"}]}`)
				require.Equal(t, http.StatusCreated, status, body)
			}
			greeted(t, strings.TrimSuffix(i.ws, "/ws"))
			require.NotContains(t, i.errors.String(), "ermissions violation")
		})
	}
}

// greeted connects a client of the swarm and waits for its welcome.
func greeted(t *testing.T, base string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, base+"/ws/asp/client", nil) //nolint:bodyclose // Dial closes it
	require.NoError(t, err)
	defer func() { _ = conn.CloseNow() }()
	_, frame, err := conn.Read(ctx)
	require.NoError(t, err)
	require.Contains(t, string(frame), "orchestrator.client.welcome")
}
