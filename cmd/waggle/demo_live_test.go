package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/api"
)

// TestDemo: the page may kill the server of the demo, which comes back at the same address and has its sessions. Signals end both
// processes.
func TestDemo(t *testing.T) {
	t.Parallel()
	i := &installation{dir: bustest.Store(t), ended: make(chan error, 1), errors: &output{}}
	i.cmd = exec.Command("waggle", "demo", "--no-browser", "--down", "10ms", "--addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0")
	i.cmd.Dir, i.cmd.Stderr, i.cmd.Env = i.dir, i.errors, append(i.env(), "WAGGLE_ADDR=127.0.0.1:0")
	out, err := i.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, i.cmd.Start())
	t.Cleanup(func() { i.end(t, syscall.SIGKILL) })
	banner, lines := make(chan string, 1), make(chan string, 99)
	go func() {
		s := bufio.NewScanner(out)
		for text := ""; s.Scan(); {
			lines <- s.Text()
			if text += s.Text() + "\n"; strings.Contains(s.Text(), "Open in a browser") {
				banner <- text
			}
		}
		i.ended <- i.cmd.Wait()
	}()
	i.addr = chatLine.FindStringSubmatch(<-banner)[2]
	var info api.ConsoleInfo
	i.ask(t, http.MethodGet, "/api/v1/console", &info)
	require.NotEmpty(t, info.Plug)
	var made api.SessionName
	i.ask(t, http.MethodPost, "/api/v1/sessions", &made)

	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, info.Plug, nil)
	require.NoError(t, err)
	req.Header.Set("Origin", "http://"+i.addr)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
	for line := range lines {
		if strings.Contains(line, "was killed with SIGKILL") {
			break
		}
	}
	healthy, err := i.run(t, "waggle healthcheck --wait 90s")
	require.NoError(t, err, healthy)
	var again api.ConsoleInfo
	i.ask(t, http.MethodGet, "/api/v1/console", &again)
	require.Equal(t, info, again)
	require.NoError(t, i.end(t, syscall.SIGTERM))
}

// ask makes a request to the API and reads the answer.
func (i *installation) ask(t *testing.T, method, path string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+i.addr+path, strings.NewReader("{}"))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Less(t, resp.StatusCode, 300)
	require.NoError(t, json.NewDecoder(resp.Body).Decode(into))
}
