package index_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// inputs returns the ids and states of the questions of a part, through pages of the size.
func (r *rig) inputs(tn id.Tenant, part string, want int) (out []string) {
	r.t.Helper()
	for before := uint64(0); ; {
		p, err := r.Questions(r.ctx, tn, part, before, want)
		require.NoError(r.t, err)
		for _, q := range p.Questions {
			out = append(out, q.InputID+" "+q.State)
		}
		if !p.More {
			return out
		}
		before = p.Scanned
	}
}

func asksTool(input, run, arguments string) event.Data {
	return event.InputRequestedData{
		InputID: input, RunID: run, Scope: event.ScopeTool, CallID: "c-" + input, Tool: "pay", Arguments: json.RawMessage(arguments),
		Digest: "of the worker", TimeoutSeconds: 60,
	}
}

// TestQuestionsFollowTheirLog event by event: each is open from the event that asks until the one that ends it, whichever
// that is, and the same when the index is made from all events at once.
func TestQuestionsFollowTheirLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := sessionOf(red, "s1")
	step := func(open, over []string, data ...event.Data) {
		t.Helper()
		r.append(l, data...)
		require.NoError(t, r.Update(r.ctx, l))
		require.Equal(t, open, r.inputs(red, subject.QuestionsOpen, 1))
		require.Equal(t, over, r.inputs(red, subject.QuestionsOver, 2))
	}
	step(nil, nil, opened("ann"), asked("r1", "pay"))
	step([]string{"i1 open"}, nil, asksTool("i1", "r1", `{"n":1}`))
	step([]string{"i2 open", "i1 open"}, nil, asksTool("i2", "r1", `{"n":2}`))
	p, err := r.Questions(r.ctx, red, subject.QuestionsOpen, 0, 10)
	require.NoError(t, err)
	q := p.Questions[0]
	require.Equal(t, "session.s1.i2 session s1 4 pay ann tool r1 pay", strings.Join([]string{q.ID, q.Kind, q.LogID, fmt.Sprint(q.Seq), q.Title, q.Principal, q.Scope, q.RunID, q.Tool}, " "))
	require.Equal(t, event.CallDigest("pay", json.RawMessage(`{"n":2}`)), q.Digest, "of the arguments that are shown")
	require.JSONEq(t, `{"n":2}`, string(q.Arguments))
	require.Equal(t, time.Minute, q.ExpiresAt.Sub(q.AskedAt))
	step([]string{"i2 open"}, []string{"i1 answered"}, event.InputAnsweredData{InputID: "i1", RunID: "r1", Decision: event.DecisionReject, By: "bob", ClientID: "phone"})
	answered, ok, err := r.Question(r.ctx, l, id.EntityFromExternal("i1"))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "reject bob phone", answered.Decision+" "+answered.AnsweredBy+" "+answered.AnsweredOn)
	step([]string{"i3 open"}, []string{"i2 expired", "i1 answered"}, event.InputExpiredData{InputID: "i2", RunID: "r1"}, asksTool("i3", "r2", `{}`))
	step([]string{"i3 open"}, []string{"i2 expired", "i1 answered"}, event.RunCompletedData{RunID: "r1"})
	step(nil, []string{"i3 withdrawn", "i2 expired", "i1 answered"}, event.RunFailedData{RunID: "r2"})
	step(nil, []string{"i4 withdrawn", "i3 withdrawn", "i2 expired", "i1 answered"}, asksTool("i4", "r3", `{}`), event.SessionClosedData{})

	r.purgeIndex()
	require.NoError(t, r.Update(r.ctx, l))
	require.Empty(t, r.inputs(red, subject.QuestionsOpen, 10))
	over := r.inputs(red, subject.QuestionsOver, 10)
	slices.Sort(over)
	require.Equal(t, []string{"i1 answered", "i2 expired", "i3 withdrawn", "i4 withdrawn"}, over)
	require.Empty(t, r.inputs(blue, subject.QuestionsOver, 10), "of another tenant")
}

// TestQuestionsOfMembersAndTasks: they say who asks, and end with what their logs say.
func TestQuestionsOfMembersAndTasks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	team := id.EntityFromExternal("team")
	agent, err := id.MemberAgent(team, "Coder")
	require.NoError(t, err)
	member := subject.Log{Tenant: red, Kind: id.KindMember, Entity: agent}
	r.append(member, event.MemberCreatedData{MemberID: agent.String(), TeamID: "team", Root: "team", Route: "sub/Coder", TeamName: "Docs", Principal: "ann"}, asksTool("m1", "r1", `{}`))
	task := subject.Log{Tenant: red, Kind: id.KindTask, Entity: id.EntityFromExternal("t1")}
	head := event.TaskHead{TaskID: "t1", AgentID: "a1", AgentName: "Welder", Attempt: 1}
	ask := func(input string) event.Data {
		return event.TaskAskedData{TaskHead: head, InputID: input, Message: json.RawMessage(`"which?"`), Options: json.RawMessage(`["a"]`), TimeoutMS: 1500}
	}
	r.append(task, event.TaskCreatedData{TaskHead: head, TaskType: "weld", Principal: "bob"}, ask("q1"))
	for _, l := range []subject.Log{member, task} {
		require.NoError(t, r.Update(r.ctx, l))
	}
	p, err := r.Questions(r.ctx, red, subject.QuestionsOpen, 0, 10)
	require.NoError(t, err)
	require.Len(t, p.Questions, 2)
	q, m := p.Questions[0], p.Questions[1]
	require.Equal(t, "agent Welder bob weld which? 1.5s", strings.Join([]string{q.Scope, q.Asker, q.Principal, q.Title, strings.Trim(string(q.Message), `"`), q.ExpiresAt.Sub(q.AskedAt).String()}, " "))
	require.Equal(t, "tool sub/Coder ann Docs team", strings.Join([]string{m.Scope, m.Asker, m.Principal, m.Title, m.TeamID}, " "))

	r.append(task, event.TaskMessagedData{TaskHead: head, MessageID: "x", Message: json.RawMessage(`1`), From: "client_1", InputID: "q1"}, ask("q2"), event.TaskAskExpiredData{TaskHead: head, InputID: "q2"}, ask("q3"), ask("q4"))
	r.append(member, event.MemberClosedData{Reason: "closed"})
	for _, l := range []subject.Log{member, task} {
		require.NoError(t, r.Update(r.ctx, l))
	}
	require.Equal(t, []string{"q4 open"}, r.inputs(red, subject.QuestionsOpen, 10))
	over := r.inputs(red, subject.QuestionsOver, 10)
	slices.Sort(over)
	require.Equal(t, []string{"m1 withdrawn", "q1 answered", "q2 expired", "q3 withdrawn"}, over)
	r.append(task, event.TaskReleasedData{TaskHead: head, Reason: "agent_lost"})
	require.NoError(t, r.Update(r.ctx, task))
	require.Empty(t, r.inputs(red, subject.QuestionsOpen, 10))
}

// TestALargeQuestionLeavesItsContentsToTheLog: the digest is still that of the whole call.
func TestALargeQuestionLeavesItsContentsToTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := sessionOf(red, "s1")
	large := `{"text":"` + strings.Repeat("x", 100<<10) + `"}`
	r.append(l, opened("ann"), asksTool("i1", "r1", large))
	require.NoError(t, r.Update(r.ctx, l))
	p, err := r.Questions(r.ctx, red, subject.QuestionsOpen, 0, 10)
	require.NoError(t, err)
	require.Len(t, p.Questions, 1)
	require.True(t, p.Questions[0].Cut)
	require.Empty(t, p.Questions[0].Arguments)
	require.Equal(t, event.CallDigest("pay", json.RawMessage(large)), p.Questions[0].Digest)

	some := `{"text":"` + strings.Repeat("x", 5<<10) + `"}`
	r.append(l, asksTool("i2", "r1", some))
	require.NoError(t, r.Update(r.ctx, l))
	p, err = r.Questions(r.ctx, red, subject.QuestionsOpen, 0, 1)
	require.NoError(t, err)
	require.JSONEq(t, some, string(p.Questions[0].Arguments))
	require.False(t, p.Questions[0].Cut)
	r.append(l, event.InputAnsweredData{InputID: "i2", RunID: "r1", Decision: event.DecisionApprove})
	require.NoError(t, r.Update(r.ctx, l))
	past, ok, err := r.Question(r.ctx, l, id.EntityFromExternal("i2"))
	require.NoError(t, err)
	require.True(t, ok && past.Cut, "many are over, and they are small")
}

// TestQuestionsLeaveWithTheirLog: nothing of them is left, whether the role of the writer may purge or not.
func TestQuestionsLeaveWithTheirLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gone := sessionOf(red, "gone")
	task := subject.Log{Tenant: red, Kind: id.KindTask, Entity: id.EntityFromExternal("task")}
	r.append(gone, opened("ann"), asksTool("i1", "r1", `{"secret":1}`), asksTool("i2", "r1", `{"secret":1}`), event.InputAnsweredData{InputID: "i2", RunID: "r1"})
	head := event.TaskHead{TaskID: "task"}
	r.append(task, event.TaskCreatedData{TaskHead: head}, event.TaskAskedData{TaskHead: head, InputID: "q1", Message: json.RawMessage(`"secret"`)},
		event.TaskAskedData{TaskHead: head, InputID: "q2", Message: json.RawMessage(`"secret"`)})
	faded := index.NewFollower(index.Config{Index: r.Index, Conn: r.conn, Kind: id.KindTask, Logger: zerolog.Nop(), Fades: true})
	catchUp := func(open, over int) {
		t.Helper()
		require.NoError(t, r.once().CatchUp(r.ctx))
		require.NoError(t, faded.CatchUp(r.ctx))
		require.Len(t, r.inputs(red, subject.QuestionsOpen, 10), open)
		require.Len(t, r.inputs(red, subject.QuestionsOver, 10), over)
	}
	catchUp(2, 2)
	r.append(gone, event.SessionDeletedData{})
	r.append(task, event.TaskDeletedData{Reason: "session_deleted"})
	catchUp(0, 0)
	require.Empty(t, r.all(red, 10))
	s, err := r.conn.JS().Stream(r.ctx, subject.StreamIndex)
	require.NoError(t, err)
	info, err := s.Info(r.ctx, jetstream.WithSubjectFilter("index.red.>"))
	require.NoError(t, err)
	for name := range info.State.Subjects {
		m, err := s.GetLastMsgForSubject(r.ctx, name)
		require.NoError(t, err)
		require.NotContains(t, string(m.Data), "secret", name)
	}
}

// TestSlowWritersOpenNoQuestionAgain: many writers of one log, each of which may be overtaken at any point.
func TestSlowWritersOpenNoQuestionAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := sessionOf(red, "a")
	r.append(l, opened("ann"))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 30 {
				_ = r.Update(r.ctx, l) // which may lose against the others
			}
		})
	}
	for n := range 20 {
		r.append(l, asksTool(fmt.Sprint("i", n), "r1", `{}`))
		r.append(l, event.InputAnsweredData{InputID: fmt.Sprint("i", n), RunID: "r1", Decision: event.DecisionApprove})
	}
	r.append(l, asksTool("last", "r1", `{}`))
	all.Wait()
	require.NoError(t, r.Update(r.ctx, l))
	require.Equal(t, []string{"last open"}, r.inputs(red, subject.QuestionsOpen, 3))
	require.Len(t, r.inputs(red, subject.QuestionsOver, 7), 20)
}

// TestAFollowerKeepsTheQuestions of the kind that it follows.
func TestAFollowerKeepsTheQuestions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.follow(index.Config{Every: time.Millisecond})
	l := sessionOf(red, "s1")
	r.append(l, opened("ann"), asksTool("i1", "r1", `{}`))
	listed := func(part string, want ...string) {
		t.Helper()
		require.Eventually(t, func() bool { return slices.Equal(want, r.inputs(red, part, 10)) }, bustest.MaxWait, 5*time.Millisecond)
	}
	listed(subject.QuestionsOpen, "i1 open")
	r.append(l, event.InputAnsweredData{InputID: "i1", RunID: "r1", Decision: event.DecisionApprove})
	listed(subject.QuestionsOver, "i1 answered")
	listed(subject.QuestionsOpen)
}

// TestQuestionsOfAgentsThatDoJobs: both logs have them. That of the task is marked, and both end alike.
func TestQuestionsOfAgentsThatDoJobs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l, task := sessionOf(red, "s1"), subject.Log{Tenant: red, Kind: id.KindTask, Entity: id.EntityFromExternal("work_1")}
	head := event.TaskHead{TaskID: "work_1", AgentID: "a1", AgentName: "Welder", Attempt: 1}
	message, options := json.RawMessage(`"which?"`), json.RawMessage(`["a"]`)
	until := time.Now().Add(time.Hour).UTC()
	asks := func(input string, seq uint64) event.Data {
		return event.InputRequestedData{
			InputID: input, RunID: "r1", Scope: event.ScopeAgent, Summary: "which?", TimeoutSeconds: 3600,
			AgentQuestion: event.AgentQuestion{TaskID: "work_1", TaskSeq: seq, AgentName: "Welder", MessageType: "input_request", Message: message, Options: options, ExpiresAt: until},
		}
	}
	r.append(l, opened("ann"), asked("r1", "weld"), asks("ask_1", 2))
	r.append(task, event.TaskCreatedData{TaskHead: head, TaskType: "message", Session: "s1", RunID: "r1"}, event.TaskAskedData{TaskHead: head, InputID: "q1", Message: message, TimeoutMS: 3_600_000})
	update := func() {
		t.Helper()
		require.NoError(t, r.Update(r.ctx, l))
		require.NoError(t, r.Update(r.ctx, task))
	}
	update()
	p, err := r.Questions(r.ctx, red, subject.QuestionsOpen, 0, 10)
	require.NoError(t, err)
	require.Len(t, p.Questions, 2)
	at, in := p.Questions[0], p.Questions[1]
	require.Equal(t, []bool{true, false}, []bool{at.Elsewhere, in.Elsewhere})
	require.Equal(t, []string{"session", "agent", "Welder", "ann", `"which?"`, `["a"]`, "", "input_request"}, []string{
		in.Kind, in.Scope, in.Asker, in.Principal, string(in.Message), string(in.Options), in.Summary, in.MessageType,
	})
	require.WithinDuration(t, until, in.ExpiresAt, time.Second)
	r.append(task, event.TaskMessagedData{TaskHead: head, MessageID: "c1", Message: message, InputID: "q1", By: "ann", Given: &event.GivenAnswer{InputID: "ask_1", Decision: event.DecisionApprove, ClientID: "phone"}})
	r.append(l, event.InputAnsweredData{InputID: "ask_1", RunID: "r1", Decision: event.DecisionApprove, By: "ann", ClientID: "phone", Scope: event.ScopeAgent}, asks("ask_2", 4),
		event.InputExpiredData{InputID: "ask_2", RunID: "r1", Scope: event.ScopeAgent, Withdrawn: true})
	update()
	require.Empty(t, r.inputs(red, subject.QuestionsOpen, 10))
	over := r.inputs(red, subject.QuestionsOver, 10)
	slices.Sort(over)
	require.Equal(t, []string{"ask_1 answered", "ask_2 withdrawn", "q1 answered"}, over)
	for log, input := range map[subject.Log]string{l: "ask_1", task: "q1"} {
		q, ok, err := r.Question(r.ctx, log, id.EntityFromExternal(input))
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "approve ann phone", q.Decision+" "+q.AnsweredBy+" "+q.AnsweredOn, input)
	}
}
