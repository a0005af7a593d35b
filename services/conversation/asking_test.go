package conversation_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
)

// painter is a session in which an agent of the swarm has a message.
func painter(t *testing.T) (*world, command.JobRef) {
	t.Helper()
	w := newWorld(t)
	w.do(command.Open, "open", command.OpenSession{Dialect: "agui"})
	w.do(command.SendMessage, "m1", command.UserMessage{Content: "paint", RunSpec: event.RunSpec{Mode: event.ModeChat, Agent: "Painter"}})
	ref := command.JobRef{RunID: conversation.RunID("m1")}
	w.do(command.AssignJob, "taken", command.AssignedJob{JobRef: ref, TaskID: "work_1", Agent: "Painter", Attempt: 1})
	return w, ref
}

// asks has the agent ask.
func (w *world) agentAsks(ref command.JobRef, input string, attempt int) int {
	return w.do(command.AskPeople, input+".asked", command.JobQuestion{
		JobRef: ref, InputID: input, Attempt: attempt, Summary: "Which colour?", TimeoutSeconds: 60,
		AgentQuestion: event.AgentQuestion{TaskID: "work_1", TaskSeq: 7, AgentName: "Painter", Message: json.RawMessage(`"Which colour?"`)},
	})
}

// TestAnAgentAsksPeople: the question is recorded once, an answer to it is handed on and recorded when the task has taken it.
func TestAnAgentAsksPeople(t *testing.T) {
	w, ref := painter(t)
	require.Equal(t, 1, w.agentAsks(ref, "ask_1", 1))
	require.Zero(t, w.agentAsks(ref, "ask_1", 1))
	require.True(t, w.state.Due(w.now, rules).IsZero(), "the task decides when the question expires")

	answer := command.AnswerQuestion{InputID: "ask_1", Approved: true, Message: json.RawMessage(`{"colour":"red"}`), ClientID: "phone", Segment: "s2"}
	require.Zero(t, w.do(command.Answer, "a1", answer), "the log of the task decides")
	require.Nil(t, w.direct)
	m, ok := w.state.Handed(w.command(command.Answer, "a1", answer), rules)
	require.True(t, ok)
	require.Equal(t, command.TaskMessage{
		TaskID: "work_1", MessageType: command.TypeInputResponse, Message: json.RawMessage(`{"colour":"red"}`), Asked: 7,
		Given: &event.GivenAnswer{InputID: "ask_1", Decision: event.DecisionAnswer, ClientID: "phone", Segment: "s2"},
	}, m)

	closed := command.ClosedQuestion{JobRef: ref, InputID: "ask_1", CommandID: "a1", By: "alice", Decision: event.DecisionAnswer, ClientID: "phone", Segment: "s2", Message: m.Message}
	require.Equal(t, 1, w.do(command.CloseQuestion, "closed", closed))
	require.Zero(t, w.do(command.CloseQuestion, "closed", closed))
	d, err := event.As[event.InputAnsweredData](w.log[len(w.log)-1])
	require.NoError(t, err)
	require.Equal(t, []string{"a1", "alice", "s2", event.ScopeAgent}, []string{d.CommandID, d.By, d.Segment, d.Scope})

	require.Zero(t, w.do(command.Answer, "a1", answer), "a repeat of the answer that counts")
	require.Nil(t, w.direct)
	w.do(command.Answer, "a2", answer)
	refused, ok := w.direct.(event.CommandRefusedData)
	require.True(t, ok)
	require.Equal(t, []string{string(fault.InputAnswered), "alice", "phone"}, []string{refused.Code, refused.AnsweredBy, refused.AnsweredOn})
	_, ok = w.state.Handed(w.command(command.Answer, "a2", answer), rules)
	require.False(t, ok)

	require.Equal(t, 1, w.agentAsks(ref, "ask_2", 1))
	w.do(command.FinishJob, "done", command.FinishedJob{JobRef: ref, TaskID: "work_1", Output: "red"})
	require.Equal(t, conversation.Completed, w.state.Run(ref.RunID).Status)
	require.Zero(t, w.agentAsks(ref, "ask_3", 1), "its run is over")
	require.Zero(t, w.do(command.CloseQuestion, "closed2", command.ClosedQuestion{JobRef: ref, InputID: "ask_2", Withdrawn: true}))
}

// TestAnswersOfApprovals are told to an agent as protocols without words say them.
func TestAnswersOfApprovals(t *testing.T) {
	w, ref := painter(t)
	w.agentAsks(ref, "ask_1", 1)
	for want, a := range map[string]command.AnswerQuestion{
		`approve {"approved":true,"text":"red"}`: {Approved: true, Feedback: "red"},
		`reject {"approved":false}`:              {},
		`answer null`:                            {Message: json.RawMessage(`null`)},
	} {
		a.InputID = "ask_1"
		m, ok := w.state.Handed(w.command(command.Answer, "a", a), rules)
		require.True(t, ok)
		require.Equal(t, want, m.Given.Decision+" "+string(m.Message))
	}
}

// TestAnswersToAgentsThatAreNotHandedOn: those of strangers, those that are too long, and those to other questions.
func TestAnswersToAgentsThatAreNotHandedOn(t *testing.T) {
	w, ref := painter(t)
	w.agentAsks(ref, "ask_1", 1)
	for name, c := range map[string]command.Command{
		"a stranger's": func() command.Command {
			c := w.command(command.Answer, "x1", command.AnswerQuestion{InputID: "ask_1", Message: json.RawMessage(`1`)})
			c.Principal = "eve"
			return c
		}(),
		"a long one":       w.command(command.Answer, "x2", command.AnswerQuestion{InputID: "ask_1", Message: json.RawMessage(`"` + strings.Repeat("x", 40<<10) + `"`)}),
		"an unknown one":   w.command(command.Answer, "x3", command.AnswerQuestion{InputID: "ask_9", Message: json.RawMessage(`1`)}),
		"no answer at all": w.command(command.Cancel, "x4", command.AnswerQuestion{InputID: "ask_1"}),
	} {
		_, ok := w.state.Handed(c, rules)
		require.False(t, ok, name)
		if c.Verb == command.Answer {
			n, _ := w.try(c, 1)
			require.Zero(t, n, name)
			require.NotNil(t, w.direct, name)
		}
	}
	w.do(command.SendMessage, "m2", command.UserMessage{Content: "plan", RunSpec: event.RunSpec{Mode: event.ModeChat}})
	w.do(command.Delete, "gone", nil)
	_, ok := w.state.Handed(w.command(command.Answer, "x5", command.AnswerQuestion{InputID: "ask_1", Message: json.RawMessage(`1`)}), rules)
	require.False(t, ok, "the session is deleted")
}

// TestDecisionsTakeNoMessage: only agents do.
func TestDecisionsTakeNoMessage(t *testing.T) {
	w := newWorld(t)
	yes := true
	w.ask(event.RunSpec{ConfirmPlan: &yes})
	w.say(w.job(), tasks)
	in := w.state.Active().Plan.Asked
	require.Zero(t, w.do(command.Answer, "a", command.AnswerQuestion{InputID: in.ID, Approved: true, Message: json.RawMessage(`"yes"`)}))
	refused, ok := w.direct.(event.CommandRefusedData)
	require.True(t, ok)
	require.Equal(t, string(fault.InvalidField), refused.Code)
	require.Equal(t, 1, strings.Count(w.types(0), string(event.InputRequested)))
}

// TestQuestionsOfAgentsThatGetNoAnswer: they expire, or their agent does not wait any more. An agent has one.
func TestQuestionsOfAgentsThatGetNoAnswer(t *testing.T) {
	w, ref := painter(t)
	w.agentAsks(ref, "ask_1", 1)
	w.now = w.now.Add(time.Minute)
	require.Equal(t, 1, w.do(command.CloseQuestion, "c1", command.ClosedQuestion{JobRef: ref, InputID: "ask_1"}))
	w.do(command.Answer, "late", command.AnswerQuestion{InputID: "ask_1", Message: json.RawMessage(`1`)})
	require.Equal(t, string(fault.InputExpired), w.direct.(event.CommandRefusedData).Code)

	w.agentAsks(ref, "ask_2", 1)
	require.Equal(t, 2, w.agentAsks(ref, "ask_3", 1), "the earlier one is withdrawn")
	d, err := event.As[event.InputExpiredData](w.log[len(w.log)-2])
	require.NoError(t, err)
	require.Equal(t, event.InputExpiredData{
		InputID: "ask_2", RunID: ref.RunID, ExecutionID: w.state.Run(ref.RunID).ExecutionID, TimeoutSeconds: 60, Scope: event.ScopeAgent, Withdrawn: true,
	}, d)
	w.do(command.Answer, "late2", command.AnswerQuestion{InputID: "ask_2", Message: json.RawMessage(`1`)})
	require.Equal(t, string(fault.InputNotFound), w.direct.(event.CommandRefusedData).Code)

	w.do(command.AssignJob, "taken2", command.AssignedJob{JobRef: ref, TaskID: "work_1", Agent: "Other", Attempt: 2})
	require.Zero(t, w.agentAsks(ref, "ask_4", 1), "an agent that has lost the task does not ask")
	w.do(command.Cancel, "stop", command.CancelRun{})
	require.Zero(t, w.do(command.CloseQuestion, "c3", command.ClosedQuestion{JobRef: ref, InputID: "ask_3", Withdrawn: true}))
}

// TestAServiceMayDieBetweenTheEventsOfAQuestion: the repeat of the command continues.
func TestAServiceMayDieBetweenTheEventsOfAQuestion(t *testing.T) {
	w, ref := painter(t)
	w.agentAsks(ref, "ask_1", 1)
	c := w.command(command.AskPeople, "second", command.JobQuestion{JobRef: ref, InputID: "ask_2", Attempt: 1, AgentQuestion: event.AgentQuestion{TaskID: "work_1", TaskSeq: 9}})
	n, whole := w.try(c, 1)
	require.False(t, whole)
	require.Equal(t, 1, n)
	n, whole = w.try(c, 1<<30)
	require.True(t, whole)
	require.Equal(t, 1, n)
	raw, err := w.state.Store()
	require.NoError(t, err)
	back, err := conversation.Load(raw)
	require.NoError(t, err)
	again, err := back.Store()
	require.NoError(t, err)
	require.Equal(t, string(raw), string(again))
	m, ok := back.Handed(w.command(command.Answer, "a", command.AnswerQuestion{InputID: "ask_2", Message: json.RawMessage(`1`)}), rules)
	require.True(t, ok)
	require.EqualValues(t, 9, m.Asked)
}
