package chat

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/orbit"
)

// A client that waits for an answer is told that no worker is available, beside the answer.
func TestAskTellsThatNoWorkerIsAvailable(t *testing.T) {
	url := serve(t, func(p *peer) {
		p.greet("s1", 0)
		p.read()
		p.send(orbit.UserInput, 3, "e1", orbit.MessageData{Message: "q?"})
		p.send(orbit.AgentThinking, 0, "", orbit.ThoughtData{Message: "No worker\x1b[2J", Code: event.NoWorker})
		p.send(orbit.AgentThinking, 0, "", orbit.ThoughtData{Message: "One is back", Code: event.WorkerBack})
		p.answer(4, "e1", "Forty-two")
		p.until()
	})
	var out, remarks bytes.Buffer
	require.NoError(t, Ask(bounded(t), Options{URL: url}, "q?", nil, terminal.NewScreen(&out, &remarks), true, nil))
	require.Equal(t, "Forty-two\n", out.String())
	require.Contains(t, remarks.String(), "No worker")
	require.NotContains(t, remarks.String(), "\x1b[2J")
}
