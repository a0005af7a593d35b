package edge

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
	got, ok := sent(answer)
	require.True(t, ok)
	require.Equal(t, want, got)

	got, ok = refused(answer, fault.New(fault.SessionNotFound))
	require.True(t, ok)
	want.Outcome, want.Code = audit.Denied, string(fault.SessionNotFound)
	require.Equal(t, want, got)

	got, ok = sent(of(command.CallTool, `{"server":"bank","tool":"pay"}`))
	require.True(t, ok)
	require.Equal(t, []string{audit.Sent, "bank", "pay"}, []string{got.Outcome, got.Server, got.Tool})
	_, ok = refused(of(command.SendMessage, `{}`), fault.New(fault.SessionNotFound))
	require.False(t, ok, "the request has a record of its own")
	_, ok = sent(of(command.Ack, `{}`))
	require.False(t, ok)
}

// A record of a call names server and tool, never the arguments.
func TestRecordsOfCallsNameTheTool(t *testing.T) {
	of := func(data string) audit.Record {
		r, ok := requested(command.Command{Service: command.Task, Verb: command.RunTool, Data: json.RawMessage(data)}, nil)
		require.True(t, ok)
		return r
	}
	require.Equal(t, audit.Record{Service: "task", Verb: "run_tool", Server: "workspace", Tool: "read_file"},
		of(`{"server":"workspace","tool":"read_file","arguments":{"path":"secret"}}`))
	require.Empty(t, of(`{"name":"x"}`).Tool)
	require.Less(t, len(of(`{"tool":"`+strings.Repeat("x", 1<<20)+`"}`).Tool), 1000)
	require.Equal(t, audit.Record{Service: "task", Verb: "run_tool"}, of(`?`))
}
