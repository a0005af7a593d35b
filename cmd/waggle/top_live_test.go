package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/console/consoletest"
)

// TestTop: the view shows sessions and what waits for people, answers a question with a key, and says when the gateway is gone.
func TestTop(t *testing.T) {
	t.Parallel()
	i := start(t)
	post := func(path, body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+i.addr+"/api/v1/"+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Less(t, resp.StatusCode, 300, string(text))
		var named struct {
			SessionID string `json:"session_id"`
		}
		require.NoError(t, json.Unmarshal(text, &named))
		return named.SessionID
	}
	first, second := post("sessions", "{}"), post("sessions", "{}")
	question, err := json.Marshal("what is\x1b[2J 2+3?\u202e")
	require.NoError(t, err)
	post("sessions/"+first+"/messages", `{"content":`+string(question)+`}`)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	x := consoletest.Open(t, 30, 100)
	c := exec.CommandContext(ctx, "waggle", "top", "--url", i.ws)
	c.Dir, c.Env = i.dir, append(i.env(), consoletest.Environ()...)
	c.Stdin, c.Stdout, c.Stderr = x.TTY, x.TTY, i.errors
	require.NoError(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	x.Wait("[1 Sessions]")
	x.Wait("› " + first[:8])
	x.Wait("what is 2+3?")

	post("sessions/"+second+"/messages", `{"content":"List the files in the workspace, then count the words of notes.md","mode":"plan","confirm_plan":true}`)
	x.Wait("2 Questions (1)")
	x.Type("2")
	x.Wait("[2 Questions (1)]")
	x.Wait("y approve")
	x.Wait("session/" + second)
	x.Type("a")
	x.Wait("This question takes: y approve")
	x.Type("N")
	x.Wait("why not ›")
	x.Type("too much", "\x1b")
	x.Wait("y approve")
	x.Type("y")
	x.Wait("Nothing waits for people.")
	x.Type("\t")
	x.Wait("[3 Agents]")
	x.Wait("assistant")
	x.Type("6")
	x.Wait("pipeline")
	x.Type("7")
	x.Wait("REDELIVERED")
	x.Wait("commands of the service")
	x.Type("1")
	x.Until("the plan's end", func(rows []string) bool {
		for _, r := range rows {
			if strings.Contains(r, second[:8]) && strings.Contains(r, "completed") {
				return true
			}
		}
		return false
	})
	i.end(t, 9)
	x.Wait("no answer")
	x.Wait(first[:8]) // the old rows stay
	x.Type("q")
	require.NoError(t, <-ended)
}

func TestTopNeedsATerminal(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "waggle", "top").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "top needs a terminal")
}
