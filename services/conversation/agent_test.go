package conversation_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
)

// newAgent returns the log of a member of a team.
func newAgent(t *testing.T, d event.MemberDefinition) *world {
	t.Helper()
	w := newWorld(t)
	w.from = command.Member
	require.Equal(t, 1, w.do(command.CreateMember, "create", event.MemberCreatedData{
		MemberID: "a", TeamID: "t", Colleagues: []event.Colleague{{Name: "Researcher", Role: "finds facts", Kind: event.MemberAgent}}, MemberDefinition: d,
	}))
	require.Zero(t, w.do(command.CreateMember, "again", event.MemberCreatedData{MemberID: "other"}), "an agent is made once")
	require.Equal(t, "a", w.state.Agent.MemberID)
	return w
}

// calls sends a message and has a worker's first attempt call the tools.
func (w *world) calls(commandID string, tools ...string) *conversation.Job {
	w.do(command.SendMessage, commandID, command.UserMessage{Content: "go"})
	u := w.state.Job(conversation.RunID(commandID))
	w.append(commandID+".claim", event.JobStartedData{RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: 1})
	var calls []event.ToolCall
	for i, tool := range tools {
		calls = append(calls, event.ToolCall{ID: fmt.Sprintf("%s.call%d", commandID, i), Name: tool})
	}
	w.append(commandID+".said", event.MessageCompletedData{RunID: u.RunID, MessageID: commandID + ".m", Attempt: 1, ToolCalls: calls})
	return u
}

// asked has the worker ask about everything that it has to, and put the job down.
func (w *world) asked(u *conversation.Job) {
	st := w.state.Next(u.ID)
	for _, tc := range st.Ask {
		w.append("ask."+tc.ID, event.InputRequestedData{
			InputID: conversation.QuestionOf(tc.ID), RunID: u.RunID, ExecutionID: u.ExecutionID, Scope: event.ScopeTool, Attempt: u.Attempt,
			CallID: tc.ID, Tool: tc.Name, Digest: "d." + tc.ID,
		})
	}
}

func (w *world) put(u *conversation.Job) {
	w.append(fmt.Sprintf("%s.pause.%d", u.ID, u.Attempt), event.JobSuspendedData{RunID: u.RunID, Attempt: u.Attempt, Inputs: w.state.Next(u.ID).Questions})
}

func ids(calls []event.ToolCall) []string {
	var out []string
	for _, c := range calls {
		out = append(out, c.ID)
	}
	return out
}

func TestPeopleAreAskedBeforeAToolRuns(t *testing.T) {
	w := newAgent(t, event.MemberDefinition{Name: "Coder"})
	u := w.calls("m", "files/write", command.ToolListTasks, "web/fetch")
	st := w.state.Next(u.ID)
	require.Equal(t, conversation.ActionCalls, st.Kind)
	require.Equal(t, []string{"m.call0", "m.call2"}, ids(st.Ask))
	require.Equal(t, []string{"m.call1"}, ids(st.Calls), "a tool of the team needs no approval")

	w.asked(u)
	w.append("1", event.ToolCalledData{CallID: "m.call1", RunID: u.RunID, Tool: command.ToolListTasks})
	w.append("2", event.ToolCompletedData{CallID: "m.call1", RunID: u.RunID, Result: "none"})
	st = w.state.Next(u.ID)
	require.Equal(t, conversation.ActionWait, st.Kind)
	require.Equal(t, []string{"approve_m.call0", "approve_m.call2"}, st.Questions)
	w.put(u)
	require.True(t, u.Paused)
	require.Empty(t, w.state.Ready())

	w.do(command.Answer, "r1", command.AnswerQuestion{CallID: "m.call0", Digest: "d.m.call0", Approved: true})
	a, ok := w.state.Approval("m.call0")
	require.True(t, ok)
	require.Equal(t, conversation.Approval{QuestionID: "approve_m.call0", Digest: "d.m.call0", Decision: event.DecisionApprove, Over: true}, a)
	require.Equal(t, []*conversation.Job{u}, w.state.Ready())
	require.Equal(t, u.ID+".pause.1.resumed", u.Resumption())
	st = w.state.Next(u.ID)
	require.Equal(t, []string{"m.call0"}, ids(st.Calls))
	require.Equal(t, []string{"approve_m.call2"}, st.Questions)

	require.Zero(t, u.Spent())
	w.append("claim2", event.JobStartedData{RunID: u.RunID, Attempt: 2, Resumed: true})
	require.Equal(t, 1, u.Spent())
	require.Empty(t, w.state.Ready())
	w.append("3", event.ToolCalledData{CallID: "m.call0", RunID: u.RunID, Attempt: 2, Tool: "files/write", InputID: a.QuestionID})
	w.append("4", event.ToolCompletedData{CallID: "m.call0", RunID: u.RunID, Attempt: 2, Result: "written"})
	w.do(command.Answer, "r2", command.AnswerQuestion{InputID: "approve_m.call2", Feedback: "not today"})
	require.Equal(t, conversation.ActionGenerate, w.state.Next(u.ID).Kind, "a denied call has its outcome")
	own := w.state.Brief(u.ID, 1000).Own
	require.Equal(t, conversation.Line{Role: "tool", ToolCallID: "m.call2", Content: "denied: not today", IsError: true}, own[len(own)-1])
}

func TestTheFirstAnswerCounts(t *testing.T) {
	w := newAgent(t, event.MemberDefinition{Name: "Coder"})
	u := w.calls("m", "files/write")
	w.asked(u)
	refusal := func(d command.AnswerQuestion) event.CommandRefusedData {
		t.Helper()
		w.do(command.Answer, fmt.Sprint("r", len(w.log), d), d)
		got, ok := w.direct.(event.CommandRefusedData)
		require.True(t, ok, "%#v", w.direct)
		return got
	}
	require.Equal(t, string(fault.InputNotFound), refusal(command.AnswerQuestion{CallID: "nobody"}).Code)
	require.Equal(t, string(fault.InputNotFound), refusal(command.AnswerQuestion{}).Code)
	require.Equal(t, string(fault.InputNotFound), refusal(command.AnswerQuestion{CallID: "m.call0", Digest: "of another call", Approved: true}).Code)
	require.Equal(t, string(fault.InputNotFound), refusal(command.AnswerQuestion{InputID: "approve_m.call0", CallID: "other", Approved: true}).Code)
	require.Equal(t, string(fault.InputNotFound), refusal(command.AnswerQuestion{CallID: "m.call0", Approved: true}).Code, "it names no call")
	edited := command.AnswerQuestion{CallID: "m.call0", Digest: "d.m.call0", Approved: true, Modified: json.RawMessage(`[{"id":"a"}]`)}
	require.Equal(t, string(fault.InvalidField), refusal(edited).Code, "a call has no tasks")
	require.Equal(t, 1, w.do(command.Answer, "r", command.AnswerQuestion{CallID: "m.call0"}))
	require.Nil(t, w.direct)
	require.Zero(t, w.do(command.Answer, "r", command.AnswerQuestion{CallID: "m.call0"}), "a repeat changes nothing")
	require.Nil(t, w.direct, "and is told nothing else")
	late := refusal(command.AnswerQuestion{CallID: "m.call0", Approved: true})
	require.Equal(t, string(fault.InputAnswered), late.Code)
	require.Equal(t, event.DecisionReject, late.Decision)
	require.Equal(t, "alice", late.AnsweredBy)
	require.Equal(t, "approve_m.call0", late.InputID)
	require.Equal(t, w.state.Agent.Name, late.AgentName, "whose question it was")
	require.NotEmpty(t, late.AgentName)
	require.Equal(t, "denied: no reason was given", w.state.Call("m.call0").Result)
}

// TestAnApprovalFitsIntoItsProof: workers could not verify one with more feedback than a proof holds.
func TestAnApprovalFitsIntoItsProof(t *testing.T) {
	w := newAgent(t, event.MemberDefinition{Name: "Coder"})
	w.asked(w.calls("m", "files/write"))
	for size, facts := range map[int]int{60 << 10: 0, 40 << 10: 1} {
		data, err := json.Marshal(command.AnswerQuestion{
			CallID: "m.call0", Digest: "d.m.call0", Approved: true, Feedback: strings.Repeat("x", size),
		})
		require.NoError(t, err)
		d, err := w.state.Decide(command.Command{
			ID: fmt.Sprint(size), Service: command.Member, Verb: command.Answer, Tenant: id.DefaultTenant, Key: id.EntityFromExternal("m"),
			Principal: "alice", Data: data, Signature: "s",
		}, time.Now(), rules)
		require.NoError(t, err)
		require.Len(t, d.Facts, facts, size)
		if facts > 0 {
			answered, ok := d.Facts[0].Data.(event.InputAnsweredData)
			require.True(t, ok)
			require.Equal(t, "s", answered.Proof.Signature)
			require.JSONEq(t, string(data), string(answered.Proof.Data))
		}
	}
}

func TestAPausedRunIsStopped(t *testing.T) {
	for _, how := range []command.CancelRun{{}, {All: true}} {
		w := newAgent(t, event.MemberDefinition{Name: "Coder"})
		u := w.calls("m", "files/write")
		w.asked(u)
		w.put(u)
		w.do(command.SendMessage, "m2", command.UserMessage{Content: "next"})
		w.do(command.SendMessage, "m3", command.UserMessage{Content: "and next"})
		w.do(command.Cancel, "stop", how)
		require.Equal(t, conversation.Cancelled, w.state.Run(u.RunID).Status)
		require.Empty(t, w.state.Ready())
		require.Equal(t, conversation.ActionNone, w.state.Next(u.ID).Kind)
		w.do(command.Answer, "r", command.AnswerQuestion{CallID: "m.call0", Approved: true})
		require.Equal(t, string(fault.InputNotFound), w.direct.(event.CommandRefusedData).Code)
		if how.All {
			require.Nil(t, w.state.Active())
			require.Zero(t, w.state.Waiting())
			continue
		}
		require.Equal(t, conversation.RunID("m2"), w.state.Active().ID)
		require.Equal(t, 1, w.state.Waiting())
	}
}

func TestAModelIsToldWhoSpeaks(t *testing.T) {
	w := newAgent(t, event.MemberDefinition{Name: "Coder"})
	say := func(commandID string, d command.UserMessage) string {
		w.do(command.SendMessage, commandID, d)
		run := conversation.RunID(commandID)
		h := w.state.Brief(run, 10000).History
		w.append(commandID+".done", event.RunCompletedData{RunID: run})
		w.do(command.SettleJob, run+".ended", command.JobRef{RunID: run})
		return h[len(h)-1].Content
	}
	require.Equal(t, "hello", say("1", command.UserMessage{Content: "hello"}))
	require.Equal(t, "Message from Researcher (role: finds facts):\n\nhello\n\nContext file: a.txt\nContext file: b.txt\n\nImage: https://x/y.png",
		say("2", command.UserMessage{
			Content: "hello", Sender: &event.Sender{Kind: event.SenderAgent, ID: "x", Name: "Researcher"},
			Attachments: event.Attachments{ContextFiles: []string{"a.txt", "b.txt"}, ImageURLs: []string{"https://x/y.png"}},
		}))
	require.Equal(t, "Message from Boss:\n\nhello", say("3", command.UserMessage{Content: "hello", Sender: &event.Sender{Kind: event.SenderAgent, ID: "x", Name: "Boss"}}))
	require.Equal(t, "Notification from the system:\n\nTask ready", say("4", command.UserMessage{
		Content: "Task ready", Sender: &event.Sender{Kind: event.SenderSystem, ID: "system.task_notifier"},
	}))
	w.do(command.SendMessage, "5", command.UserMessage{Content: "x"})
	h := w.state.Brief(conversation.RunID("5"), 10000).History
	require.Contains(t, h[1].Content, "Message from Researcher", "later runs see it too")
	d, err := event.As[event.MessageReceivedData](w.log[4])
	require.NoError(t, err)
	require.Equal(t, "hello", d.Content, "the log has it as it was sent")
}

func TestAnAgentClosesAndNotesWhatItHasToDo(t *testing.T) {
	w := newAgent(t, event.MemberDefinition{Name: "Coder"})
	todos := event.TodosUpdatedData{CallID: "c1", Todos: []event.Todo{{TodoID: "1", Description: "x", Status: event.TodoPending}}}
	require.Equal(t, 1, w.do(command.NoteTodos, "n1", todos))
	require.Zero(t, w.do(command.NoteTodos, "n2", todos))
	require.Equal(t, todos.Todos, w.state.Todos)
	w.do(command.SendMessage, "m1", command.UserMessage{Content: "x", RunSpec: event.RunSpec{Mode: event.ModePlan}})
	require.Nil(t, w.state.Active().Plan, "members of teams chat")
	w.do(command.SendMessage, "m2", command.UserMessage{Content: "x"})
	require.Equal(t, 3, w.do(command.CloseMember, "close", command.CloseSession{}))
	require.Equal(t, event.MemberClosed, w.log[len(w.log)-1].Type)
	require.True(t, w.state.Closed)
	require.Zero(t, w.do(command.CloseMember, "again", command.CloseSession{}))
	require.Zero(t, w.do(command.NoteTodos, "n3", event.TodosUpdatedData{CallID: "c2"}))
	w.do(command.SendMessage, "m3", command.UserMessage{Content: "x"})
	d, err := event.As[event.MessageRefusedData](w.log[len(w.log)-1])
	require.NoError(t, err)
	require.Equal(t, string(fault.TeamClosed), d.Code)
}

func TestColleaguesMayWriteMoreThanPeople(t *testing.T) {
	w := newAgent(t, event.MemberDefinition{Name: "Coder"})
	for i := range conversation.MaxWaitingMember + 2 {
		w.do(command.SendMessage, fmt.Sprint("m", i), command.UserMessage{Content: "x"})
	}
	require.Equal(t, conversation.MaxWaitingMember, w.state.Waiting())
	require.Equal(t, event.MessageRefused, w.log[len(w.log)-1].Type)
	w.do(command.Cancel, "all", command.CancelRun{All: true})
	require.Zero(t, w.state.Waiting())
	require.Nil(t, w.state.Active())
	n := len(w.log)
	w.do(command.SendMessage, "later", command.UserMessage{Content: "x"})
	require.Zero(t, w.do(command.Cancel, "all", command.CancelRun{All: true}), "what came later is none of its business")
	require.Len(t, w.log, n+2)
}

// TestASnapshotKeepsWhatCameWithAMessage: also of a run that waits or begins anew.
func TestASnapshotKeepsWhatCameWithAMessage(t *testing.T) {
	w := newWorld(t)
	w.do(command.Open, "o", command.OpenSession{})
	for _, m := range []string{"1", "2"} {
		w.do(command.SendMessage, m, command.UserMessage{
			Content: "read it", Attachments: event.Attachments{ContextFiles: []string{m + ".txt"}}, Sender: &event.Sender{Kind: event.SenderAgent, Name: "Boss"},
		})
	}
	raw, err := json.Marshal(w.state.Snapshot(10000))
	require.NoError(t, err)
	other := newWorld(t)
	other.append("restored", event.SessionRestoredData{State: raw})
	other.do(command.Resume, "resume", nil)
	h := other.state.Brief(conversation.RunID("1"), 10000).History
	require.Equal(t, "Message from Boss:\n\nread it\n\nContext file: 1.txt", h[len(h)-1].Content)
	require.Equal(t, []string{"2.txt"}, other.state.Run(conversation.RunID("2")).Attachments.ContextFiles)
}

func TestOnlyItsOwnServiceDecidesAboutAnAgent(t *testing.T) {
	w := newWorld(t)
	_, err := w.state.Decide(w.command(command.CreateMember, "c", event.MemberCreatedData{}), w.now, rules)
	require.ErrorIs(t, err, fault.New(fault.UnknownType), "sessions are opened")
	w.from = command.Member
	_, err = w.state.Decide(w.command(command.SendMessage, "m", command.UserMessage{}), w.now, rules)
	require.ErrorIs(t, err, fault.New(fault.AgentNotFound))
	_, err = w.state.Decide(w.command(command.NoteTodos, "m", event.TodosUpdatedData{}), w.now, rules)
	require.ErrorIs(t, err, fault.New(fault.AgentNotFound))
	_, err = w.state.Decide(w.command(command.Replan, "m", command.ReplanRun{}), w.now, rules)
	require.ErrorIs(t, err, fault.New(fault.UnknownType))
}

// swarmRun begins a run of a member that is an agent of the swarm.
func swarmRun(t *testing.T) (*world, command.JobRef) {
	w := newAgent(t, event.MemberDefinition{Name: "Welder", Agent: "Weld-o-mat"})
	w.do(command.SendMessage, "m", command.UserMessage{Content: "weld"})
	return w, command.JobRef{RunID: conversation.RunID("m")}
}

func TestAnAgentOfTheSwarmIsAMember(t *testing.T) {
	for dies := range 5 { // the service dies after so many events
		w, ref := swarmRun(t)
		require.True(t, w.state.Swarm())
		w.do(command.AssignJob, "taken", command.AssignedJob{JobRef: ref, TaskID: "work_1", Agent: "Weld-o-mat", Attempt: 1})
		done := w.command(command.FinishJob, "done", command.FinishedJob{JobRef: ref, TaskID: "work_1", Output: "welded"})
		w.try(done, dies)
		w.try(done, 1<<30)
		var types []event.Type
		for _, e := range w.log {
			types = append(types, e.Type)
		}
		require.Equal(t, []event.Type{
			event.MemberCreated, event.MessageReceived, event.RunStarted, event.JobStarted,
			event.MessageStarted, event.MessageDelta, event.MessageCompleted, event.RunCompleted,
		}, types)
		require.Equal(t, "welded", w.state.Run(ref.RunID).Answer)
		require.Empty(t, w.state.Abandoned())
	}
}

func TestAnAgentOfTheSwarmFails(t *testing.T) {
	w, ref := swarmRun(t)
	w.do(command.SendMessage, "m2", command.UserMessage{Content: "again"})
	w.do(command.FinishJob, "done", command.FinishedJob{JobRef: ref, Failed: true, Code: string(fault.AgentNotFound)})
	r := w.state.Run(ref.RunID)
	require.Equal(t, conversation.Failed, r.Status)
	d, err := event.As[event.RunFailedData](w.log[len(w.log)-2])
	require.NoError(t, err)
	require.Equal(t, string(fault.AgentNotFound), d.Code)
	require.NotEmpty(t, d.Message)
	require.Empty(t, w.state.Abandoned(), "the swarm knows")
	require.Equal(t, conversation.RunID("m2"), w.state.Active().ID, "the next message has its turn")

	w.do(command.Cancel, "stop", command.CancelRun{})
	require.Len(t, w.state.Abandoned(), 1, "although no agent has taken it yet")
	require.Zero(t, w.do(command.FinishJob, "late", command.FinishedJob{JobRef: command.JobRef{RunID: conversation.RunID("m2")}, Output: "x"}))
}
