package trail_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/trail"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// TestACommandIsAnAttempt: a gateway does not know whether a command will have an effect, and claims none.
func TestACommandIsAnAttempt(t *testing.T) {
	of := func(verb id.Name, data string) command.Command {
		return command.Command{ID: "c1", Service: command.Pipeline, Verb: verb, Key: id.EntityFromExternal("s1"), Data: json.RawMessage(data)}
	}
	answer := of(command.Answer, `{"input_id":"q1","digest":"d1","approved":true}`)
	want := audit.Record{Outcome: audit.Sent, Service: "pipeline", Verb: "answer", Entity: "s1", Command: "c1", Input: "q1", Digest: "d1"}
	got, ok := trail.Of(answer)
	require.True(t, ok)
	require.Equal(t, want, got)

	got, ok = trail.Refused(answer, fault.New(fault.SessionNotFound))
	require.True(t, ok)
	want.Outcome, want.Code = audit.Denied, string(fault.SessionNotFound)
	require.Equal(t, want, got)

	got, ok = trail.Of(of(command.CallTool, `{"server":"bank","tool":"pay"}`))
	require.True(t, ok)
	require.Equal(t, []string{audit.Sent, "bank", "pay"}, []string{got.Outcome, got.Server, got.Tool})
	_, ok = trail.Refused(of(command.SendMessage, `{}`), fault.New(fault.SessionNotFound))
	require.False(t, ok, "the request has a record of its own")
	_, ok = trail.Of(of(command.Ack, `{}`))
	require.False(t, ok)
}
