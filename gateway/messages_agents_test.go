package gateway_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// TestAMessageNamesTheAgentThatAnswers: the API checks the name before anything is sent, and the mode.
func TestAMessageNamesTheAgentThatAnswers(t *testing.T) {
	s := startSwarm(t)
	withAgents(s)
	_, l := s.thread()
	sent := make(chan wirecmd.UserMessage, 1)
	go func() {
		c := s.nextCommand(l.Entity.String())
		var m wirecmd.UserMessage
		_ = c.Decode(&m)
		_ = s.append(l, c.ID+".received", event.MessageReceivedData{MessageID: c.ID, RunID: "one", Content: m.Content, RunSpec: m.RunSpec})
		sent <- m
	}()
	path := "/api/v1/sessions/" + l.Entity.String() + "/messages"
	status, text := s.post(path, `{"content":"weld it","agent":"Weld-o-mat"}`)
	require.Equal(t, http.StatusAccepted, status, text)
	m := <-sent
	require.Equal(t, "Weld-o-mat", m.Agent)
	require.Equal(t, "weld it", m.Content)

	status, text = s.post(path, `{"content":"weld it","agent":"Weld"}`)
	require.Equal(t, http.StatusNotFound, status, text)
	require.Contains(t, text, "AGENT_NOT_FOUND")
	status, text = s.post(path, `{"content":"weld it","agent":"Weld-o-mat","mode":"plan"}`)
	require.Equal(t, http.StatusUnprocessableEntity, status, text)
	require.Contains(t, text, `"agent"`)
	require.Empty(t, s.inbox(l.Entity.String()), "nothing else was sent")
}
