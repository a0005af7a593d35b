package teams

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/sdk/go/waggle/team"
)

var update = flag.Bool("update", false, "write the golden files")

// research is a team of three with a team of two in it.
var research = command.TeamView{TeamID: "team_1", Name: "research", Definition: event.TeamDefinition{
	Name: "research", Coordinator: "Lead", Members: []event.MemberDefinition{
		{Name: "Lead"}, {Name: "Analyst"}, {Name: "library", Team: &event.TeamDefinition{
			Name: "library", Coordinator: "Librarian", Members: []event.MemberDefinition{{Name: "Librarian"}, {Name: "Reader"}},
		}},
	},
}}

// frames reads frames, one a line.
func frames(t testing.TB, file string) []team.Frame {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var out []team.Frame
	for l := range strings.Lines(string(text)) {
		f, err := team.Parse([]byte(l))
		require.NoError(t, err, l)
		out = append(out, f)
	}
	return out
}

// golden compares with the file of that name.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func text(rows []terminal.Row) string {
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(r.Text + "\n")
	}
	return b.String()
}

// TestTheStoryOfARun shows the lines of each frame, and the tree where something is open.
func TestTheStoryOfARun(t *testing.T) {
	s := newStory(newTree(research))
	var b strings.Builder
	b.WriteString(text(s.rows()))
	for _, f := range frames(t, "testdata/run.jsonl") {
		said := s.take(f)
		for _, l := range said {
			mark := "  "
			if l.quiet {
				mark = "q "
			}
			b.WriteString(strings.TrimRight(mark+l.Text, " ") + "\n")
		}
		if len(s.open) > 0 && len(said) > 0 {
			b.WriteString("--- asked: " + s.open[0].InvocationID + "\n" + text(s.rows()) + "---\n")
		}
	}
	b.WriteString(text(s.rows()))
	golden(t, "testdata/run.golden", b.String())
	require.Empty(t, s.open)
	require.Empty(t, s.segments)
	require.Empty(t, s.calls)
}

// TestGreetingsAreSilent: a server greets with statuses whenever a client comes back.
func TestGreetingsAreSilent(t *testing.T) {
	s := newStory(newTree(research))
	require.Empty(t, s.take(frame(`{"type":"TEAM_STATUS","payload":{"new_status":"IDLE"}}`)))
	require.Equal(t, "IDLE", s.root.status)
	require.Empty(t, s.take(frame(idle(31))), "known")
	require.Len(t, s.take(frame(running(47))), 1)
	require.Empty(t, s.take(frame(running(63))))
	require.Empty(t, s.take(frame(`{"type":"AGENT_STATUS","payload":{"new_status":"idle","member_route_key":"Lead"}}`)))
}

func frame(raw string) team.Frame {
	f, err := team.Parse([]byte(raw))
	if err != nil {
		panic(err)
	}
	return f
}

func TestWhatFailsIsNeverQuiet(t *testing.T) {
	for _, raw := range []string{
		`{"type":"ERROR","payload":{"code":"X","message":"no","agent_name":"Lead"}}`,
		at(31, "TEAM_STATUS", `"new_status":"ERROR","error_message":"Lead: no"`),
		`{"type":"TOOL_EXECUTION_FAILED","payload":{"tool_name":"t","error":"no","agent_name":"Lead"}}`,
		`{"type":"TOOL_DENIED","payload":{"tool_name":"t","reason":"no","agent_name":"Lead"}}`,
		at(47, "AGENT_STATUS", `"new_status":"error","error_message":"no","agent_name":"Lead"`),
	} {
		said := newStory(newTree(research)).take(frame(raw))
		require.Len(t, said, 1, raw)
		require.False(t, said[0].quiet)
		require.Contains(t, said[0].Text, "no")
	}
}

func TestQuestionsEndWithTheRun(t *testing.T) {
	s := newStory(newTree(research))
	s.take(frame(`{"type":"TOOL_APPROVAL_REQUESTED","payload":{"invocation_id":"c","tool_name":"t","arguments":{},"member_route_key":"library/Reader"}}`))
	require.Len(t, s.open, 1)
	s.take(frame(`{"type":"AGENT_STATUS","payload":{"new_status":"idle","member_route_key":"Lead"}}`))
	require.Len(t, s.open, 1)
	s.take(frame(`{"type":"AGENT_STATUS","payload":{"new_status":"idle","member_route_key":"library/Reader"}}`))
	require.Empty(t, s.open)
}

// TestNothingSteersTheTerminal: whatever a server says, no line holds more than one line
// of text.
func TestNothingSteersTheTerminal(t *testing.T) {
	types := []string{
		"AGENT_STATUS", "TEAM_STATUS", "SEGMENT_CONTENT", "SEGMENT_END", "ASSISTANT_COMPLETE", "TOOL_APPROVAL_REQUESTED", "TOOL_APPROVED", "TOOL_DENIED",
		"TOOL_EXECUTION_STARTED", "TOOL_EXECUTION_SUCCEEDED", "TOOL_EXECUTION_FAILED", "INTER_AGENT_MESSAGE", "SYSTEM_TASK_NOTIFICATION",
		"TASK_PLAN_EVENT", "TODO_LIST_UPDATE", "ARTIFACT_PERSISTED", "ERROR", "ANYTHING",
	}
	rapid.Check(t, func(t *rapid.T) {
		s := newStory(newTree(research))
		evil := rapid.SampledFrom([]string{"\x1b[2J", "a\nb", "\u202e", "\x07", "\x9b1m", "ä", "x", "/", ""})
		str := func() string { return strings.Join(rapid.SliceOfN(evil, 0, 3).Draw(t, "text"), "") }
		for range rapid.IntRange(1, 5).Draw(t, "frames") {
			p := map[string]any{"arguments": map[string]string{str(): str()}, "result": str(), "tasks": []map[string]string{{"task_id": str(), "task_name": str()}}}
			for _, k := range []string{
				"agent_name", "member_route_key", "new_status", "error_message", "id", "delta", "content", "invocation_id", "tool_name", "reason",
				"error", "sender_agent_id", "path", "code", "message",
			} {
				p[k] = str()
			}
			p["segment_type"] = "text"
			raw, err := json.Marshal(map[string]any{"type": rapid.SampledFrom(types).Draw(t, "type"), "payload": p})
			require.NoError(t, err)
			for _, l := range s.take(frame(string(raw))) {
				require.Equal(t, terminal.Strip(l.Text), l.Text)
				require.NotContains(t, l.Text, "\n")
			}
		}
		for _, r := range s.rows() {
			require.Equal(t, terminal.Strip(r.Text), r.Text)
			require.NotContains(t, r.Text, "\n")
		}
	})
}
