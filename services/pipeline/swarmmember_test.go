package pipeline_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/directory"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/pipeline"
	"github.com/waggle-dev/waggle/services/task"
	"github.com/waggle-dev/waggle/services/tools"
)

// swarm starts the service of swarm tasks. The test plays the gateway of its agents.
func (r *rig) swarm() {
	r.T.Helper()
	s, err := task.New(task.Config{Confirm: maxWait}, r.Deps("swarm"), struct{ tools.Toolbox }{})
	require.NoError(r.T, err)
	require.NoError(r.T, s.Start(r.Ctx))
	r.T.Cleanup(s.Stop)
}

// welder connects an agent of the swarm and returns what it is told.
func (r *rig) welder() <-chan event.Event {
	r.T.Helper()
	heard := make(chan event.Event, 100)
	gateway := id.MustName("swarmgw")
	sub, err := r.Conn.NATS().Subscribe(subject.DirectFilter(gateway), func(m *nats.Msg) {
		var e event.Event
		if json.Unmarshal(m.Data, &e) == nil {
			heard <- e
		}
		if m.Reply != "" {
			_ = m.Respond([]byte("+"))
		}
	})
	require.NoError(r.T, err)
	r.T.Cleanup(func() { require.NoError(r.T, sub.Unsubscribe()) })
	raw, err := json.Marshal(cmd.Participant{
		Kind: cmd.ParticipantAgent, Tenant: id.DefaultTenant, ID: "w1", Name: "Weld-o-mat", Capabilities: []string{"weld"}, Status: cmd.StatusActive,
		Gateway: gateway.String(), Connection: "c1", Online: true, Since: time.Now(),
	})
	require.NoError(r.T, err)
	_, err = r.Dir.Join(r.Ctx, directory.Member{What: cmd.WhatAgent, Name: id.MustName("c1"), Instance: gateway, Data: raw})
	require.NoError(r.T, err)
	return heard
}

// assigned waits for the next task that the agent is given.
func assigned(t testing.TB, heard <-chan event.Event) (a event.TaskAssignedData, said map[string]any) {
	t.Helper()
	for {
		e := next(t, heard, "a task")
		if e.Type != event.TaskAssigned {
			continue
		}
		a, err := event.As[event.TaskAssignedData](e)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(a.Data, &said))
		return a, said
	}
}

func (r *rig) result(taskID string, d cmd.TaskResult) {
	r.T.Helper()
	d.TaskID, d.AgentID = taskID, "w1"
	raw, err := json.Marshal(d)
	require.NoError(r.T, err)
	require.NoError(r.T, r.Send.Send(r.Ctx, cmd.Command{
		ID: taskID + ".result", Service: cmd.Task, Verb: cmd.FinishTask, Tenant: id.DefaultTenant, Key: id.EntityFromExternal(taskID), Time: time.Now(), Data: raw,
	}))
}

// TestAnAgentOfTheSwarmIsAMember: messages to the member become tasks of the agent, one
// at a time, and what comes of them is what the member answers. Stop reaches the agent.
func TestAnAgentOfTheSwarmIsAMember(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.swarm()
	r.members(r.Deps("a"))
	heard := r.welder()
	l := coder(t)
	r.create(l, event.MemberDefinition{Name: "Welder", Agent: "Weld-o-mat", Instructions: "Weld well."})
	r.command(l, cmd.SendMessage, "m1", cmd.UserMessage{
		Content: "weld it", Sender: &event.Sender{Kind: event.SenderAgent, ID: "x", Name: "Boss"}, Attachments: event.Attachments{ContextFiles: []string{"plan.txt"}},
	})
	r.command(l, cmd.SendMessage, "m2", cmd.UserMessage{Content: "weld more"})
	r.command(l, cmd.SendMessage, "m3", cmd.UserMessage{Content: "and more"})

	a, said := assigned(t, heard)
	require.Equal(t, "message", a.TaskType)
	require.Equal(t, "p-create", a.Owner, "the task belongs to the owner of the team")
	require.Equal(t, "weld it", said["content"])
	require.Equal(t, "Boss", said["sender"].(map[string]any)["name"])
	require.Equal(t, []any{"plan.txt"}, said["context_files"])
	require.Equal(t, "Builders", said["team_name"])
	require.Equal(t, "Weld well.", said["instructions"])
	require.NotContains(t, said, "history")
	r.result(a.TaskID, cmd.TaskResult{Result: json.RawMessage(`{"text":"welded"}`)})
	done := r.Until(l, event.RunCompleted, 1)
	d, err := event.As[event.RunCompletedData](done[len(done)-1])
	require.NoError(t, err)
	require.Equal(t, "welded", d.Content)

	a, said = assigned(t, heard)
	require.Equal(t, "weld more", said["content"])
	require.Len(t, said["history"], 2)
	r.result(a.TaskID, cmd.TaskResult{Failed: true, Code: "TASK_EXECUTION_ERROR", Error: "out of gas"})
	failed := r.Until(l, event.RunFailed, 1)
	f, err := event.As[event.RunFailedData](failed[len(failed)-1])
	require.NoError(t, err)
	require.Contains(t, f.Message, "out of gas")

	a, _ = assigned(t, heard)
	r.Until(l, event.JobStarted, 3)
	r.command(l, cmd.Cancel, "stop", cmd.CancelRun{All: true})
	r.Until(l, event.RunCancelled, 1)
	over := r.Until(subject.Log{Tenant: l.Tenant, Kind: id.KindTask, Entity: id.EntityFromExternal(a.TaskID)}, event.TaskFinished, 1)
	e, err := event.As[event.TaskFinishedData](over[len(over)-1])
	require.NoError(t, err)
	require.Equal(t, "cancelled", e.Status)
	require.Equal(t, []conversation.Status{conversation.Completed, conversation.Failed, conversation.Cancelled}, statuses(r.fold(l)))
}

func statuses(st *conversation.State) []conversation.Status {
	var out []conversation.Status
	for _, r := range st.Runs() {
		out = append(out, r.Status)
	}
	return out
}

// TestAnAgentOfTheSwarmIsNotThere: no agent has the capabilities, and the sender gets the error.
func TestAnAgentOfTheSwarmIsNotThere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.swarm()
	r.members(r.Deps("a"))
	l := coder(t)
	r.create(l, event.MemberDefinition{Name: "Welder", Capabilities: []string{"weld", "fly"}})
	r.command(l, cmd.SendMessage, "m1", cmd.UserMessage{Content: "weld it"})
	failed := r.Until(l, event.RunFailed, 1)
	f, err := event.As[event.RunFailedData](failed[len(failed)-1])
	require.NoError(t, err)
	require.Equal(t, "AGENT_NOT_FOUND", f.Code)
}

// TestAMessageThatWaitsForTheSwarmIsTakenBack: the run is stopped before any agent has
// its task, which would wait for one otherwise.
func TestAMessageThatWaitsForTheSwarmIsTakenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	sent := r.Taken(cmd.Task)
	r.members(r.Deps("a"))
	l := coder(t)
	r.create(l, event.MemberDefinition{Name: "Welder", Capabilities: []string{"weld"}})
	r.command(l, cmd.SendMessage, "m1", cmd.UserMessage{Content: "weld it"})
	c := next(t, sent, "a task")
	require.Equal(t, cmd.CreateTask, c.Verb)
	var made cmd.NewTask
	require.NoError(t, c.Decode(&made))
	require.Equal(t, []string{"weld"}, made.Capabilities)
	require.Equal(t, cmd.NewTask{Session: l.Entity.String(), Kind: id.KindMember, RunID: conversation.RunID("m1")},
		cmd.NewTask{Session: made.Session, Kind: made.Kind, RunID: made.RunID, JobID: made.JobID})
	r.command(l, cmd.Cancel, "stop", cmd.CancelRun{})
	back := next(t, sent, "the recall")
	require.Equal(t, cmd.CancelTask, back.Verb)
	require.Equal(t, c.Key, back.Key)
}

// TestAnAgentOfTheSwarmAnswersInASession: a message that names an agent becomes its task, with the conversation so far and the
// members of the client's message; the next message without a name goes to the model, which sees the agent's answer.
func TestAnAgentOfTheSwarmAnswersInASession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.swarm()
	r.start("a", pipeline.Config{Access: access.Policy{Default: access.Settings{See: access.Tenant}}})
	items := r.items()
	heard := r.welder()
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("welding")}
	r.append(l, event.SessionCreatedData{Dialect: "myagent", Principal: "ann"})
	r.command(l, cmd.SendMessage, "m1", cmd.UserMessage{Content: "weld it", RunSpec: event.RunSpec{
		Agent: "Weld-o-mat", Facts: []event.Fact{{Description: "the metal", Value: "steel"}},
		History: []event.Said{{Role: event.RoleUser, Content: "earlier"}, {Role: event.RoleAssistant, Content: "yes"}},
		Extra:   json.RawMessage(`{"agui":{"state":{"step":1}},"content":"forged","history":[]}`),
	}})
	a, said := assigned(t, heard)
	require.Equal(t, "message", a.TaskType)
	require.Equal(t, "ann", a.Owner, "the task belongs to the owner of the session, whoever asks in it")
	require.Equal(t, "weld it", said["content"])
	require.Equal(t, l.Entity.String(), said["session_id"])
	require.Equal(t, map[string]any{"state": map[string]any{"step": 1.0}}, said["agui"])
	require.Equal(t, []any{map[string]any{"description": "the metal", "value": "steel"}}, said["facts"])
	require.Len(t, said["history"], 2)
	r.result(a.TaskID, cmd.TaskResult{Result: json.RawMessage(`{"text":"welded"}`)})
	done := r.Until(l, event.RunCompleted, 1)
	d, err := event.As[event.RunCompletedData](done[len(done)-1])
	require.NoError(t, err)
	require.Equal(t, "welded", d.Content)

	r.command(l, cmd.SendMessage, "m2", cmd.UserMessage{Content: "thanks"})
	ref := next(t, items, "a job of the model")
	require.Equal(t, conversation.RunID("m2"), ref.RunID)
	history := r.fold(l).Brief(ref.RunID, 1<<20).History
	require.Equal(t, "welded", history[len(history)-2].Content)
	r.command(l, cmd.Cancel, "stop", cmd.CancelRun{})

	r.command(l, cmd.SendMessage, "m3", cmd.UserMessage{Content: "more", RunSpec: event.RunSpec{Agent: "Weld-o-mat"}})
	a, _ = assigned(t, heard)
	r.Until(l, event.JobStarted, 2)
	r.command(l, cmd.Cancel, "stop2", cmd.CancelRun{})
	over := r.Until(subject.Log{Tenant: l.Tenant, Kind: id.KindTask, Entity: id.EntityFromExternal(a.TaskID)}, event.TaskFinished, 1)
	e, err := event.As[event.TaskFinishedData](over[len(over)-1])
	require.NoError(t, err)
	require.Equal(t, "cancelled", e.Status)
	delegated := 0
	for _, w := range r.fold(l).Delegated() {
		delegated++
		require.NotEqual(t, ref.RunID, w.RunID)
	}
	require.Equal(t, 2, delegated, "their tasks end with the session")

	r.command(l, cmd.SendMessage, "m4", cmd.UserMessage{Content: "plan it", RunSpec: event.RunSpec{Agent: "Weld-o-mat", Mode: event.ModePlan}})
	refused := r.Until(l, event.MessageRefused, 1)
	f, err := event.As[event.MessageRefusedData](refused[len(refused)-1])
	require.NoError(t, err)
	require.Equal(t, "INVALID_FIELD", f.Code)
}

// TestAMessageThatNoTaskHolds fails its run, and nothing else.
func TestAMessageThatNoTaskHolds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", pipeline.Config{})
	l := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("long")}
	r.open(l)
	r.command(l, cmd.SendMessage, "m1", cmd.UserMessage{Content: strings.Repeat("x", 242<<10), RunSpec: event.RunSpec{Agent: "Weld-o-mat"}})
	failed := r.Until(l, event.RunFailed, 1)
	f, err := event.As[event.RunFailedData](failed[len(failed)-1])
	require.NoError(t, err)
	require.Equal(t, "MESSAGE_TOO_BIG", f.Code)
}
