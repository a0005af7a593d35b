package conversation_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
)

// A run that ends while calls are under way leaves its whole round to later runs: a model that does not know what it has done
// does it again.
func TestCallsOfACancelledRun(t *testing.T) {
	for name, end := range map[string]func(w *world, run string){
		"cancelled": func(w *world, _ string) { w.do(command.Cancel, "stop", command.CancelRun{}) },
		"failed": func(w *world, run string) {
			w.append("failed", event.RunFailedData{RunID: run, Code: "BUDGET_EXCEEDED"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.do(command.Open, "open", command.OpenSession{Dialect: "orbit"})
			w.do(command.SendMessage, "one", command.UserMessage{Content: "both", RunSpec: event.RunSpec{Mode: event.ModeChat}})
			run := conversation.RunID("one")
			w.append("claim", event.JobStartedData{RunID: run, Attempt: 1, Worker: "w1"})
			call := func(id string) event.ToolCall {
				return event.ToolCall{ID: id, Name: id, Arguments: json.RawMessage(`{}`)}
			}
			w.append("m", event.MessageStartedData{RunID: run, MessageID: "m", Attempt: 1})
			w.append("thoughts", event.ReasoningCompletedData{RunID: run, MessageID: "m", Content: "I will.", PassBack: &event.PassBack{Provider: "p", Data: json.RawMessage(`{}`)}})
			w.append("said", event.MessageCompletedData{RunID: run, MessageID: "m", ToolCalls: []event.ToolCall{call("add"), call("wait"), call("read"), call("never"), call("asked")}})
			for _, c := range []string{"add", "wait", "read"} {
				w.append("call "+c, event.ToolCalledData{RunID: run, CallID: c, Tool: c, Idempotent: c == "read"})
				w.append("start "+c, event.ToolStartedData{RunID: run, CallID: c, Tool: c})
			}
			w.append("ask", event.InputRequestedData{RunID: run, InputID: "q", Scope: event.ScopeTool, CallID: "asked", Tool: "asked"})
			w.append("done", event.ToolCompletedData{RunID: run, CallID: "add", Tool: "add", Result: "done"})
			end(w, run)
			w.do(command.SendMessage, "two", command.UserMessage{Content: "what did you do?", RunSpec: event.RunSpec{Mode: event.ModeChat}})

			got := w.state.Brief(conversation.RunID("two"), 1<<20).History
			require.Len(t, got, 8, "two questions, the message, five results")
			require.Len(t, got[1].ToolCalls, 5)
			require.Equal(t, "I will.", got[1].Reasoning)
			require.Equal(t, "p", got[1].PassBack.Provider)
			for i, want := range []struct {
				id, says string
				failed   bool
			}{{"add", "done", false}, {"wait", "effect unknown", true}, {"read", "may be repeated", true}, {"never", "Not done", true}, {"asked", "Not done", true}} {
				require.Equal(t, want.id, got[2+i].ToolCallID)
				require.Contains(t, got[2+i].Content, want.says)
				require.Equal(t, want.failed, got[2+i].IsError)
			}
			require.Equal(t, "what did you do?", got[7].Content)
		})
	}
}

// Whatever has happened in a log, each call that a later run is told of has exactly one result, right after its message.
func TestAnyHistoryHasOneResultForEachCall(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := &member{world: newWorld(r), sent: map[string]bool{}}
		m.from = command.Member
		m.issue(r, command.CreateMember, event.MemberCreatedData{MemberID: "a", TeamID: "t", MemberDefinition: event.MemberDefinition{Name: "Coder"}})
		acts := []func(*rapid.T){m.message, m.message, m.respond, m.race, m.control, m.work, m.work, m.work}
		for range rapid.IntRange(1, 60).Draw(r, "acts") {
			acts[rapid.IntRange(0, len(acts)-1).Draw(r, "act")](r)
		}
		for _, run := range m.state.Runs() {
			if m.state.Job(run.ID) == nil {
				continue
			}
			b := m.state.Brief(run.ID, 1<<20)
			lines := append(b.History, b.Own...)
			for i := 0; i < len(lines); i++ {
				require.NotEqual(r, "tool", lines[i].Role, "a result without its call")
				for _, tc := range lines[i].ToolCalls {
					i++
					require.Less(r, i, len(lines))
					require.Equal(r, tc.ID, lines[i].ToolCallID)
				}
			}
		}
	})
}
