package fold_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
	"github.com/waggle-dev/waggle/gateway/dialect"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// shapes are the types of frames in a stream of the thread, with what tells them apart.
func shapes(t testing.TB, events []event.Event) (out []string) {
	t.Helper()
	for _, frames := range play(fold.V1, events) {
		for _, f := range shown(frames) {
			var m struct {
				frame
				Message string
			}
			require.NoError(t, json.Unmarshal(f.Data, &m))
			out = append(out, strings.TrimSpace(strings.Join([]string{m.Type, m.RunID, m.Name, m.ActivityType, m.SubagentRunID, m.ParentSubagentRunID, m.Delta}, " ")))
		}
	}
	return out
}

// tidy removes what stands twice in a row, and shortens the spaces.
func tidy(list []string) (out []string) {
	for _, s := range list {
		out = append(out, strings.Join(strings.Fields(s), " "))
	}
	return out
}

// TestATeamWorks: from the user's message to the rest of all members. The coordinator speaks for the team; others, also those of a
// team in it, are its subagents.
func TestATeamWorks(t *testing.T) {
	o := newSite(t, 1)
	o.own(event.TeamStatusData{NewStatus: event.TeamIdle, OldStatus: event.TeamStarting})
	o.status = event.TeamIdle
	begun := len(o.out)
	o.tell("Boss", "build it", nil)
	o.of("Boss", event.MessageDeltaData{MessageID: "t1", RunID: o.runs["Boss"].run, Attempt: 1, Text: "I ask."})
	o.of("Boss", event.MessageCompletedData{MessageID: "t1", RunID: o.runs["Boss"].run, Attempt: 1, Role: event.RoleAssistant, Content: "I ask."})
	o.tell("backend/Lead", "build", &event.Sender{Kind: event.SenderAgent, ID: "a", Name: "Boss", Route: "Boss"})
	o.tell("backend/Tester", "test", &event.Sender{Kind: event.SenderAgent, ID: "b", Name: "Lead", Route: "backend/Lead"})
	lead, tester := o.runs["backend/Lead"].run, o.runs["backend/Tester"].run
	o.end("backend/Tester", event.RunCompletedData{RunID: tester, MessageID: "t2", Content: "tested"})
	o.end("backend/Lead", event.RunCompletedData{RunID: lead, MessageID: "t3", Content: "built"})
	o.end("Boss", event.RunCompletedData{RunID: o.runs["Boss"].run, MessageID: "t1", Content: "I ask."})
	got := tidy(shapes(t, o.out))
	got = slices.DeleteFunc(got, func(s string) bool { return strings.Contains(s, "waggle.team") })
	run := "m" + strings.TrimPrefix(o.out[begun].ID, "e")
	require.Equal(t, []string{
		"RUN_STARTED " + run,
		"TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT I ask.", "TEXT_MESSAGE_END",
		"CUSTOM waggle.message",
		"SUBAGENT_STARTED backend/Lead " + lead,
		"CUSTOM waggle.message",
		"SUBAGENT_STARTED backend/Tester " + tester + " " + lead,
		"SUBAGENT_FINISHED " + tester,
		"SUBAGENT_FINISHED " + lead,
		"RUN_FINISHED " + run,
	}, got)
	last := play(fold.V1, o.out)[len(o.out)-1]
	require.Contains(t, string(last[len(last)-1].Data), `"result":{"outcome":"success","messageId":"t1"}`)
	for _, f := range play(fold.V0, o.out) {
		for _, one := range f {
			require.NotContains(t, string(one.Data), "SUBAGENT")
			require.NotContains(t, string(one.Data), "subagentRunId")
		}
	}
}

// TestATeamAsks: a stretch ends where nothing but people moves, with all questions of all members, and continues with an answer.
func TestATeamAsks(t *testing.T) {
	o := newSite(t, 1)
	ask := func(route, call string) {
		run := o.runs[route].run
		o.of(route, event.InputRequestedData{InputID: "approve_" + call, RunID: run, Scope: event.ScopeTool, CallID: call, Tool: "write", Arguments: []byte(`{}`), Attempt: 1})
		o.of(route, event.JobSuspendedData{RunID: run, Attempt: 1, Inputs: []string{"approve_" + call}})
		o.runs[route].asks = call
	}
	o.tell("Boss", "build it", nil)
	o.tell("Coder", "code", &event.Sender{Kind: event.SenderAgent, ID: "a", Name: "Boss", Route: "Boss"})
	ask("Boss", "c1")
	thread := empty(fold.V1, o.out)
	again := func() {
		for _, e := range o.out[thread.Seq():] {
			thread.Take(e)
		}
	}
	again()
	_, only := thread.Questions()
	require.False(t, only, "Coder is at work")
	ask("Coder", "c2")
	again()
	open, only := thread.Questions()
	require.True(t, only)
	require.Len(t, open, 2)
	require.Equal(t, o.runs["Coder"].run, open[1].SubagentRunID)
	require.Empty(t, open[0].SubagentRunID, "the coordinator's")

	_, err := thread.Means(teamRequest(t, `{"messages":[{"id":"u2","role":"user","content":"well?"}]}`))
	require.ErrorIs(t, err, fault.New(fault.InputRequired))
	m, err := thread.Means(teamRequest(t, `{"resume":[{"interruptId":"approve_c1","status":"resolved","payload":true},{"interruptId":"approve_c2","status":"cancelled"}]}`))
	require.NoError(t, err)
	require.Equal(t, fold.Reply, m.Kind)
	require.Len(t, m.Intents, 2)
	o.of("Coder", event.InputAnsweredData{InputID: "approve_c2", RunID: o.runs["Coder"].run, CommandID: "x", CallID: "c2", Decision: event.DecisionReject, Segment: "run-2"})
	again()
	require.Equal(t, "run-2", thread.Open())
	o.end("Coder", event.RunCompletedData{RunID: o.runs["Coder"].run, Content: "not coded"})
	again()
	require.Empty(t, thread.Open(), "Boss still waits")
	open, _ = thread.Questions()
	require.Len(t, open, 1)
	o.stop()
	again()
	_, active := thread.Run()
	require.False(t, active)
	last := play(fold.V1, o.out)[len(o.out)-1]
	require.Contains(t, string(last[len(last)-1].Data), `"outcome":{"type":"cancelled"}`)
}

func teamRequest(t testing.TB, body string) input.Request {
	t.Helper()
	var in wire.Input
	require.NoError(t, json.Unmarshal([]byte(body), &in))
	in.ThreadID, in.RunID, in.ProtocolVersion = "thread-1", "run-2", "1.0"
	if in.Messages == nil {
		in.Messages = []wire.Message{}
	}
	q, err := input.Check(in, input.To{Team: true})
	require.NoError(t, err)
	return q
}

// TestMessagesToATeam: where they go, and what is not handed on. Those that come while the team works join its run.
func TestMessagesToATeam(t *testing.T) {
	o := newSite(t, 1)
	q := teamRequest(t, `{"messages":[{"id":"u1","role":"user","content":"build it"}],"tools":[{"name":"paint"}],"context":[{"description":"a","value":"b"}],"forwardedProps":{"waggle":{"targetMember":"backend/Lead"}}}`)
	m, err := empty(fold.V1, o.out).Means(q)
	require.NoError(t, err)
	require.Equal(t, "backend/Lead", m.Intents[0].Member)
	require.Equal(t, []string{"tools", "context"}, m.Unoffered)
	d, ok := m.Intents[0].Data.(dialect.SendMessage)
	require.True(t, ok)
	require.Equal(t, "build it", d.Content)
	long := teamRequest(t, `{"messages":[{"id":"u1","role":"user","content":"`+strings.Repeat("x", 101<<10)+`"}]}`)
	_, err = empty(fold.V1, o.out).Means(long)
	require.ErrorIs(t, err, fault.New(fault.MessageTooBig))

	o.own(event.TeamMessageData{MessageID: "c1", Member: "Boss", Content: "build it", Extra: d.Extra})
	o.own(event.TeamMessageData{MessageID: "c2", Member: "Boss", Content: "and that", Extra: []byte(`{"agui":{"run_id":"run-3","message_id":"u2"}}`)})
	thread := fold.Of(id.KindTeam, fold.V1)
	for _, e := range o.out {
		thread.Take(e)
	}
	require.Equal(t, "run-2", thread.Open())
	require.True(t, thread.Knows("u1") && thread.Knows("u2"))
	s, known := thread.Stretch("run-3")
	require.True(t, known)
	require.Equal(t, "run-2", s.Joins)
	m, err = thread.Means(q)
	require.NoError(t, err)
	require.Equal(t, fold.Repeat, m.Kind)
	i, err := thread.Stops(wire.Cancel{Member: "Coder", Reason: "enough"})
	require.NoError(t, err)
	require.Equal(t, "Coder", i.Member)
	require.Equal(t, dialect.Cancel{All: true, Reason: "enough"}, i.Data)
	_, err = thread.Stops(wire.Cancel{TaskID: "a"})
	require.ErrorIs(t, err, fault.New(fault.InvalidField))
}

// TestAnyTeam: whatever a team does, clients refuse nothing, a viewer of any position gets what others got, and who joins sees the
// same messages.
func TestAnyTeam(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		events := newSite(t, rapid.Uint64().Draw(r, "seed")).live(rapid.IntRange(1, 40).Draw(r, "length"))
		for _, v := range variants {
			whole, rules := play(v, events), newRules()
			for i, frames := range whole {
				for _, f := range shown(frames) {
					if err := rules.take(f); err != nil {
						r.Fatalf("%s, event %d (%s): %v", v.Name(), i+1, events[i].Type, err)
					}
				}
			}
			cut := rapid.IntRange(0, len(events)-1).Draw(r, "cut")
			base := empty(v, events)
			for _, e := range events[:cut] {
				base.Take(e)
			}
			viewer := base.Clone("thread-1")
			for i, e := range events[cut:] {
				require.Equal(r, whole[cut+i], viewer.Next(e), "%s: cut before event %d, event %d", v.Name(), cut+1, cut+i+1)
			}
		}
	})
}

// TestEveryRunOfATeamEnds: where the team is at rest, no run of its thread is open.
func TestEveryRunOfATeamEnds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		events := newSite(t, rapid.Uint64().Draw(r, "seed")).live(60)
		thread := empty(fold.V1, events)
		for _, e := range events {
			thread.Take(e)
			d, err := event.As[event.TeamStatusData](e)
			_, active := thread.Run()
			switch {
			case e.Type == event.TeamStatus && err == nil && (d.NewStatus == event.TeamIdle || d.NewStatus == event.TeamFailed):
				require.False(r, active, "event %d", e.Sequence)
			case e.Type == event.TeamStatus && d.NewStatus == event.TeamRunning:
				require.True(r, active, "event %d", e.Sequence)
			}
		}
	})
}
