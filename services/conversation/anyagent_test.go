package conversation_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
)

// member drives the log of a member of a team: people who answer at once and too
// late, workers that die between two events, a service that dies between two events
// or before it hands work on, and a queue of work items that delivers some twice.
type member struct {
	*world
	watched
	items     []string // work items on the queue: ids of jobs
	sent      map[string]bool
	commands  int
	effective []command.Command
	pending   *command.Command // the service died while it handled it: it comes again first
	auto      bool
}

// TestAnyMemberKeepsTheInvariants: whatever messages, answers, stops, deaths and
// repeats come in whatever order, a question has one answer, no tool that people are
// asked about runs without their approval of that very call, and a denied one never
// does. Once all questions have their answers nothing waits any more, and every
// accepted message has exactly one end.
func TestAnyMemberKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &member{world: newWorld(t), sent: map[string]bool{}, auto: rapid.IntRange(0, 4).Draw(t, "auto") == 0}
		m.from = command.Member
		m.issue(t, command.CreateMember, event.MemberCreatedData{
			MemberID: "a", TeamID: "t", MemberDefinition: event.MemberDefinition{Name: "Coder", AutoExecuteTools: m.auto},
		})
		t.Repeat(map[string]func(*rapid.T){
			"message": m.message,
			"respond": m.respond,
			"race":    m.race,
			"control": m.control,
			"work":    m.work,
			"work2":   m.work,
			"work3":   m.work,
			"work4":   m.work,
			"repeat":  m.repeat,
			"":        m.check,
		})
		m.drain(t)
	})
}

func (m *member) issue(t *rapid.T, verb id.Name, data any) {
	m.commands++
	m.handle(t, m.command(verb, fmt.Sprint("c", m.commands), data))
}

func (m *member) handle(t *rapid.T, k command.Command) {
	m.redeliver()
	dies := 1 << 30
	if rapid.IntRange(0, 4).Draw(t, "dies") == 0 {
		dies = rapid.IntRange(0, 3).Draw(t, "after")
	}
	n, whole := m.try(k, dies)
	if n > 0 {
		m.effective = append(m.effective, k)
	}
	if !whole || rapid.IntRange(0, 9).Draw(t, "dies late") == 0 {
		m.pending = &k
		if rapid.Bool().Draw(t, "window") {
			m.sent = map[string]bool{} // the bus has forgotten what was sent
		}
		return
	}
	m.followUp()
}

func (m *member) redeliver() {
	if k := m.pending; k != nil {
		m.pending = nil
		_, whole := m.try(*k, 1<<30)
		require.True(m.t, whole)
		m.followUp()
	}
}

// followUp sends work items as the service does.
func (m *member) followUp() {
	send := func(item, job string) {
		if !m.sent[item] {
			m.sent[item] = true
			m.items = append(m.items, job)
		}
	}
	for _, w := range m.state.Unclaimed() {
		send(w.ID, w.ID)
	}
	for _, w := range m.state.Ready() {
		send(w.Resumption(), w.ID)
	}
}

func (m *member) message(t *rapid.T) {
	d := command.UserMessage{Content: "x"}
	if rapid.Bool().Draw(t, "from an agent") {
		d.Sender = &event.Sender{Kind: event.SenderAgent, ID: "b", Name: "Researcher"}
	}
	m.issue(t, command.SendMessage, d)
}

// answer makes an answer to one of the questions, which may be right, late or wrong.
func (m *member) answer(t *rapid.T) (command.AnswerQuestion, event.InputRequestedData) {
	q := rapid.SampledFrom(m.questions).Draw(t, "question")
	d := command.AnswerQuestion{Approved: rapid.IntRange(0, 2).Draw(t, "approved") > 0, Feedback: rapid.SampledFrom([]string{"", "no"}).Draw(t, "why")}
	if rapid.Bool().Draw(t, "by call") {
		d.CallID = q.CallID
	} else {
		d.InputID = q.InputID
	}
	switch rapid.IntRange(0, 5).Draw(t, "digest") {
	case 0:
		d.Digest = "of another call"
	case 1, 2:
		d.Digest = q.Digest
	}
	return d, q
}

func (m *member) respond(t *rapid.T) {
	m.redeliver()
	if len(m.questions) == 0 {
		return
	}
	d, q := m.answer(t)
	before, open := m.state.Approval(q.CallID)
	require.True(t, open)
	m.issue(t, command.Answer, d)
	if m.pending != nil {
		return
	}
	refused, isRefusal := m.direct.(event.CommandRefusedData)
	switch {
	case d.Digest != "" && d.Digest != q.Digest:
		require.Equal(t, string(fault.InputNotFound), refused.Code)
	case before.Decision != "":
		require.Equal(t, string(fault.InputAnswered), refused.Code)
		require.Equal(t, before.Decision, refused.Decision)
		require.Equal(t, "alice", refused.AnsweredBy)
	case before.Over:
		require.Equal(t, string(fault.InputNotFound), refused.Code)
	case d.Approved && d.Digest == "":
		require.Equal(t, string(fault.InputNotFound), refused.Code, "an approval names its call")
	default:
		require.False(t, isRefusal, "the first answer counts")
		now, _ := m.state.Approval(q.CallID)
		require.NotEmpty(t, now.Decision)
	}
}

// race gives one question several answers.
func (m *member) race(t *rapid.T) {
	for range 3 {
		m.respond(t)
	}
}

func (m *member) control(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0, 1:
		m.issue(t, command.Cancel, command.CancelRun{})
	case 2, 3:
		m.issue(t, command.Cancel, command.CancelRun{All: true})
		if m.pending == nil {
			require.Nil(t, m.state.Active(), "all means all")
			require.Zero(t, m.state.Waiting())
		}
	case 4:
		m.issue(t, command.CloseMember, command.CloseSession{})
	default:
		m.issue(t, command.NoteTodos, event.TodosUpdatedData{
			CallID: fmt.Sprint("call_todo", rapid.IntRange(0, 9).Draw(t, "call")), Todos: []event.Todo{{TodoID: "1"}},
		})
	}
}

// repeat delivers an old command once more, long after it was done.
func (m *member) repeat(t *rapid.T) {
	m.redeliver()
	if len(m.effective) == 0 {
		return
	}
	k := rapid.SampledFrom(m.effective).Draw(t, "which")
	n := len(m.log)
	m.try(k, 1<<30)
	require.Len(t, m.log, n, "a repeated %s had its effect twice", k.Verb)
	m.followUp()
}

// work lets a worker do one thing: take an item from the queue, or continue with what it
// has, perhaps after another one took it over.
func (m *member) work(t *rapid.T) {
	m.redeliver()
	if len(m.items) > 0 && rapid.Bool().Draw(t, "takes") {
		job := m.items[0]
		m.items = m.items[1:]
		m.take(job)
		return
	}
	if w := m.claimed(); w != nil {
		if rapid.IntRange(0, 9).Draw(t, "takeover") == 0 {
			m.claim(w)
			return
		}
		if rapid.IntRange(0, 29).Draw(t, "fails") == 0 {
			m.end(t, w, event.RunFailedData{RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt, Code: "MODEL_FAILED"})
			return
		}
		m.step(t, w)
	}
}

// claimed returns the job that a worker has, or nil.
func (m *member) claimed() *conversation.Job {
	r := m.state.Active()
	if r == nil {
		return nil
	}
	if w := m.state.Job(r.ID); w != nil && !w.Ended && w.Attempt > 0 && !w.Paused {
		return w
	}
	return nil
}

// take claims the job of a work item, unless that is not needed any more.
func (m *member) take(job string) {
	w := m.state.Job(job)
	switch {
	case w.Ended:
	case w.Paused && m.state.Next(job).Kind == conversation.ActionWait: // an item that was sent twice
	case w.Attempt > 0 && !w.Paused:
	default:
		spent := w.Spent()
		if w.Paused {
			require.Zero(m.t, spent, "waiting for people uses up no attempts")
		}
		m.claim(w)
		require.Equal(m.t, spent+1, m.state.Job(job).Spent())
	}
}

func (m *member) claim(w *conversation.Job) {
	m.say(event.JobStartedData{RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt + 1, Resumed: w.Attempt > 0})
}

func (m *member) say(d event.Data) { m.append(fmt.Sprint("w", len(m.log)), d) }

// step appends the next event of a worker.
func (m *member) step(t *rapid.T, w *conversation.Job) {
	switch st := m.state.Next(w.ID); st.Kind {
	case conversation.ActionDiscard:
		m.say(event.MessageDiscardedData{RunID: w.RunID, MessageID: st.Discard[0], Attempt: w.Attempt})
	case conversation.ActionCalls:
		m.stepCalls(t, w, st)
	case conversation.ActionWait:
		m.say(event.JobSuspendedData{RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt, Inputs: st.Questions})
	case conversation.ActionGenerate:
		m.generate(t, w)
	case conversation.ActionFinish:
		m.end(t, w, event.RunCompletedData{RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt, Content: st.Answer.Content})
	case conversation.ActionNone:
		t.Fatalf("nothing is left to do in a run that is on")
	}
}

func (m *member) stepCalls(t *rapid.T, w *conversation.Job, st conversation.Action) {
	if len(st.Ask) > 0 {
		tc := st.Ask[0]
		m.say(event.InputRequestedData{
			InputID: conversation.QuestionOf(tc.ID), RunID: w.RunID, ExecutionID: w.ExecutionID, Scope: event.ScopeTool,
			Attempt: w.Attempt, CallID: tc.ID, Tool: tc.Name, Digest: "digest of " + tc.ID,
		})
		return
	}
	tc := rapid.SampledFrom(st.Calls).Draw(t, "call")
	approval, _ := m.state.Approval(tc.ID)
	switch c := m.state.Call(tc.ID); {
	case c == nil:
		m.say(event.ToolCalledData{CallID: tc.ID, RunID: w.RunID, Attempt: w.Attempt, Tool: tc.Name, Digest: "digest of " + tc.ID, InputID: approval.QuestionID})
	case c.Status == conversation.CallIntended:
		m.say(event.ToolStartedData{CallID: tc.ID, RunID: w.RunID, Attempt: w.Attempt, Tool: tc.Name})
	default:
		m.say(rapid.SampledFrom([]event.Data{
			event.ToolCompletedData{CallID: tc.ID, RunID: w.RunID, Attempt: w.Attempt, Tool: tc.Name, Result: "done"},
			event.ToolFailedData{CallID: tc.ID, RunID: w.RunID, Attempt: w.Attempt, Tool: tc.Name},
			event.ToolUnknownData{CallID: tc.ID, RunID: w.RunID, Attempt: w.Attempt, Tool: tc.Name},
		}).Draw(t, "outcome"))
	}
}

// generate says a message, which may call tools: those of a server and those of the
// team.
func (m *member) generate(t *rapid.T, w *conversation.Job) {
	n := len(m.log)
	if rapid.IntRange(0, 3).Draw(t, "half") == 0 {
		m.say(event.MessageStartedData{RunID: w.RunID, MessageID: fmt.Sprint("m", n), Attempt: w.Attempt})
		return
	}
	var calls []event.ToolCall
	if len(w.Messages) < 4 {
		for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
			name := rapid.SampledFrom([]string{"files/write", "web/fetch", command.ToolSendMessage}).Draw(t, "tool")
			calls = append(calls, event.ToolCall{ID: fmt.Sprintf("call_%d_%d", n, i), Name: name})
		}
	}
	m.say(event.MessageCompletedData{RunID: w.RunID, MessageID: fmt.Sprint("m", n), Attempt: w.Attempt, Content: "x", ToolCalls: calls})
}

func (m *member) end(t *rapid.T, w *conversation.Job, d event.Data) {
	m.say(d)
	m.handle(t, m.command(command.SettleJob, w.ID+".ended", command.JobRef{Kind: id.KindMember, RunID: w.RunID}))
}

// drain answers all questions, lets living workers do what is on the queue, and nothing
// else. Then everything has come to its end.
func (m *member) drain(t *rapid.T) {
	m.redeliver()
	for range 5000 {
		m.check(t)
		if i := slices.IndexFunc(m.questions, func(q event.InputRequestedData) bool {
			a, _ := m.state.Approval(q.CallID)
			return !a.Over
		}); i >= 0 && (m.claimed() == nil || rapid.Bool().Draw(t, "early")) {
			m.commands++
			k := m.command(command.Answer, fmt.Sprint("c", m.commands), command.AnswerQuestion{
				CallID: m.questions[i].CallID, Digest: m.questions[i].Digest, Approved: rapid.Bool().Draw(t, "approved"),
			})
			_, whole := m.try(k, 1<<30)
			require.True(t, whole)
			m.followUp()
			continue
		}
		if w := m.claimed(); w != nil {
			m.step(t, w)
			m.redeliver()
			continue
		}
		if len(m.items) == 0 {
			break
		}
		job := m.items[0]
		m.items = m.items[1:]
		m.take(job)
	}
	require.Nil(t, m.state.Active(), "something waits although all questions are answered")
	require.Zero(t, m.state.Waiting())
	for _, r := range m.state.Runs() {
		require.Equal(t, 1, m.ends[r.ID], "run %s has one end", r.ID)
	}
}
