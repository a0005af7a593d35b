package main

import (
	"bufio"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocs: the pages are served at the printed address until the command is interrupted.
func TestDocs(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), "waggle", "docs", "--no-browser", "pull", "the", "plug")
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	address = strings.TrimSpace(address)
	require.True(t, strings.HasSuffix(address, "/start/pull-the-plug"), address)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), ">Pull the plug</h1>")
	require.NoError(t, c.Process.Signal(syscall.SIGINT))
	require.NoError(t, c.Wait())
}

// TestDocsStayOnTheMachine: no address is served that others could reach.
func TestDocsStayOnTheMachine(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "waggle", "docs", "--no-browser", "--addr", "0.0.0.0:0").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "other machines could reach it")
}
