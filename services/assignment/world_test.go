package assignment_test

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/assignment"
)

var taskLog = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTask, Entity: id.EntityFromExternal("t1")}

// world is a task's log with its fold, the agents around it and a clock.
type world struct {
	t      require.TestingT
	state  assignment.State
	log    []event.Event
	now    time.Time
	agents []assignment.Candidate
	tool   assignment.Tool
	rules  assignment.Rules
	direct event.Data // of the command handled last
	again  []uint64   // and what is said again in answer to it

	replyTo string // of commands
}

// newWorld has the agents a1 and a2 of the name A, and b1 of the name B.
func newWorld(t require.TestingT) *world {
	w := &world{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), rules: assignment.DefaultRules}
	for i, agent := range []assignment.Candidate{
		{ID: "a1", Name: "A", Capabilities: []string{"x"}},
		{ID: "a2", Name: "A", Capabilities: []string{"x", "y"}},
		{ID: "b1", Name: "B", Capabilities: []string{"y", "z"}},
	} {
		agent.Online, agent.Status, agent.Since = true, command.StatusActive, w.now.Add(time.Duration(i-10)*time.Second)
		w.agents = append(w.agents, agent)
	}
	return w
}

func (w *world) env() assignment.Env {
	return assignment.Env{Now: w.now, Agents: assignment.List(w.agents), Tool: w.tool, Rules: w.rules}
}

func (w *world) agent(agentID string) *assignment.Candidate {
	i := slices.IndexFunc(w.agents, func(a assignment.Candidate) bool { return a.ID == agentID })
	require.GreaterOrEqual(w.t, i, 0)
	return &w.agents[i]
}

func (w *world) leave(agentID string) { w.agent(agentID).Online = false }

func (w *world) append(eventID, request string, d event.Data) {
	e, err := event.New(taskLog, eventID, "test", w.now, d)
	require.NoError(w.t, err)
	e.Sequence, e.Request = uint64(len(w.log)+1), request
	w.log = append(w.log, e)
	require.NoError(w.t, w.state.Apply(e))
}

func (w *world) command(verb id.Name, commandID string, data any) command.Command {
	raw, err := json.Marshal(data)
	require.NoError(w.t, err)
	return command.Command{
		ID: commandID, Service: command.Task, Verb: verb, Tenant: taskLog.Tenant, Key: taskLog.Entity, Time: w.now, Data: raw, Principal: "alice", ReplyTo: w.replyTo,
	}
}

// do handles a command as the service does: until it calls for nothing more.
func (w *world) do(verb id.Name, commandID string, data any) []event.Type {
	types, whole := w.try(w.command(verb, commandID, data), 1<<30)
	require.True(w.t, whole)
	return types
}

// try handles a command until it calls for nothing more, or the service dies after
// so many events. It returns what was appended and whether the service lived.
func (w *world) try(c command.Command, dies int) (types []event.Type, whole bool) {
	for round := 0; ; round++ {
		got, err := w.state.Decide(c, w.env())
		require.NoError(w.t, err)
		if round == 0 {
			w.direct, w.again = got.Direct, got.Again
		}
		if len(got.Facts) == 0 {
			return types, true
		}
		for i, f := range got.Facts {
			if len(types) == dies {
				return types, false
			}
			require.Less(w.t, len(types), 100, "a command must come to an end")
			request := ""
			if i == 0 {
				request = got.Request
			}
			w.append(f.ID, request, f.Data)
			types = append(types, f.Data.EventType())
		}
	}
}

// due lets time pass until something is due, and handles the timer's command.
func (w *world) due() []event.Type {
	at := w.state.Due(w.env())
	require.False(w.t, at.IsZero(), "nothing is due")
	if at.After(w.now) {
		w.now = at
	}
	return w.do(command.CheckTask, "due"+w.now.String(), nil)
}

func (w *world) refused(code string) event.CommandRefusedData {
	got, ok := w.direct.(event.CommandRefusedData)
	require.True(w.t, ok, "refused with %s: %#v", code, w.direct)
	require.Equal(w.t, code, got.Code)
	require.NotEmpty(w.t, got.Message)
	return got
}

func (w *world) last(v any) {
	require.NoError(w.t, w.log[len(w.log)-1].Decode(v))
}

// ended returns the end of the task.
func (w *world) ended(status, code string) event.TaskFinishedData {
	require.True(w.t, w.state.Done())
	end := *w.state.End()
	require.Equal(w.t, status, end.Status)
	require.Equal(w.t, code, end.Code)
	require.Equal(w.t, status, w.state.Status())
	require.Equal(w.t, status, w.state.View().Status)
	require.Zero(w.t, w.state.Due(w.env()))
	return end
}

var raw = json.RawMessage(`{"n":1}`)

// forA asks for an agent of the name A.
func forA() command.NewTask {
	return command.NewTask{TaskID: "t1", RequestID: "r1", ClientID: "c1", AgentName: "A", TaskType: "sum", Data: raw}
}

// running returns a world in which a1 has the task.
func running(t require.TestingT) *world {
	w := newWorld(t)
	require.Equal(t, []event.Type{event.TaskCreated, event.TaskAssigned}, w.do(command.CreateTask, "create", forA()))
	require.Equal(t, "a1", w.state.Holder())
	return w
}
