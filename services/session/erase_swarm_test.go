package session_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/payload"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/session"
	"github.com/waggle-dev/waggle/services/task"
	"github.com/waggle-dev/waggle/services/tools"
)

// welders connects two agents of the swarm and returns what they are told.
func (r *rig) welders() <-chan event.Event {
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
	for connection, p := range map[string]cmd.Participant{
		"c1": {ID: "w1", Name: "Welder", Capabilities: []string{"weld"}}, "c2": {ID: "w2", Name: "Helper", Capabilities: []string{"help"}},
	} {
		p.Kind, p.Tenant, p.Status, p.Gateway, p.Connection, p.Online, p.Since = cmd.ParticipantAgent, id.DefaultTenant, cmd.StatusActive, gateway.String(), connection, true, time.Now()
		raw, err := json.Marshal(p)
		require.NoError(r.T, err)
		_, err = r.Dir.Join(r.Ctx, directory.Member{What: cmd.WhatAgent, Name: id.MustName(connection), Instance: gateway, Data: raw})
		require.NoError(r.T, err)
	}
	return heard
}

// told waits until an agent is told something of the type.
func told[T event.Data](t *testing.T, heard <-chan event.Event) T {
	t.Helper()
	var want T
	for {
		select {
		case e := <-heard:
			if e.Type != want.EventType() {
				continue
			}
			d, err := event.As[T](e)
			require.NoError(t, err)
			return d
		case <-time.After(maxWait):
			require.FailNow(t, "no agent is told "+string(want.EventType()))
		}
	}
}

// The tasks that a session has given to the swarm, and those that their agents have
// given on, end with it: their agents are told, and nothing of them is stored. Nothing
// that comes late makes them again.
func TestTheTasksOfADeletedSessionGoWithIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{})
	r.startPipeline("p")
	s, err := task.New(task.Config{Confirm: maxWait}, r.Deps("t"), struct{ tools.Toolbox }{})
	require.NoError(t, err)
	require.NoError(t, s.Start(r.Ctx))
	t.Cleanup(s.Stop)
	heard := r.welders()
	r.open(log, event.Preferences{})
	r.command(log, cmd.Pipeline, cmd.SendMessage, "m1", cmd.UserMessage{Content: "weld the secret", RunSpec: event.RunSpec{
		Mode: event.ModeSteps, Steps: []event.Step{{ID: "a", Title: "weld", Capability: "weld"}},
	}})
	given := told[event.TaskAssignedData](t, heard)
	parent := subject.Log{Tenant: log.Tenant, Kind: id.KindTask, Entity: id.EntityFromExternal(given.TaskID)}
	child := subject.Log{Tenant: log.Tenant, Kind: id.KindTask, Entity: id.EntityFromExternal("child")}
	r.command(parent, cmd.Task, cmd.SpawnTask, "spawn", cmd.SpawnChild{
		TaskID: given.TaskID, AgentID: "w1", RequestID: "k1", ChildID: "child", TargetName: "Helper", Data: json.RawMessage(`"help"`),
	})
	require.Equal(t, "child", told[event.TaskAssignedData](t, heard).TaskID)

	objects := payload.New(r.Conn)
	ref, err := objects.Put(r.Ctx, parent, []byte(`"`+strings.Repeat("secret ", 40_000)+`"`))
	require.NoError(t, err)
	kept, err := objects.Put(r.Ctx, sessionLog("other"), []byte(`"not a secret"`))
	require.NoError(t, err)

	r.command(log, cmd.Session, cmd.Delete, "d1", nil)
	r.gone(log)
	ended := map[string]string{}
	for range 2 {
		d := told[event.TaskFinishedData](t, heard)
		ended[d.TaskID] = d.Status
	}
	require.Equal(t, map[string]string{given.TaskID: event.TaskEndCancelled, "child": event.TaskEndCancelled}, ended)
	r.gone(parent)
	r.gone(child)
	_, err = objects.Get(r.Ctx, log.Tenant, *ref)
	require.ErrorIs(t, err, fault.New(fault.PayloadLost))
	_, err = objects.Get(r.Ctx, log.Tenant, *kept)
	require.NoError(t, err)
	for _, l := range []subject.Log{parent, child} {
		r.command(l, cmd.Task, cmd.CreateTask, "late", cmd.NewTask{TaskID: l.Entity.String(), Capabilities: []string{"weld"}, Data: json.RawMessage(`"secret"`)})
		r.command(l, cmd.Task, cmd.FinishTask, "late-result", cmd.TaskResult{TaskID: l.Entity.String(), AgentID: "w1", Result: json.RawMessage(`"secret"`)})
	}
	require.Eventually(t, func() bool {
		return r.messages(subject.StreamCommands, subject.CommandFilterAll(cmd.Task)) == 0
	}, maxWait, 5*time.Millisecond)
	for _, l := range []subject.Log{parent, child} {
		r.gone(l)
		_, err := r.Log.Last(r.Ctx, l)
		require.ErrorIs(t, err, eventlog.ErrDeleted)
		require.Zero(t, r.messages(subject.TimerStream(cmd.Task), subject.TimersFor(cmd.Task, l.Tenant, l.Entity)))
	}
	require.Zero(t, r.messages(subject.StreamDead, "dead.>"), "nothing was given up")
}

// A job that was to be given to the swarm when its session was deleted is not: the
// command that makes its task comes after the tombstone.
func TestATaskThatIsMadeLateStaysDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{})
	p := r.startPipeline("p")
	r.welders()
	r.open(log, event.Preferences{})
	r.command(log, cmd.Pipeline, cmd.SendMessage, "m1", cmd.UserMessage{RunSpec: event.RunSpec{
		Mode: event.ModeSteps, Steps: []event.Step{{ID: "a", Title: "weld", Capability: "weld"}},
	}})
	r.Until(log, event.StepStarted, 1)
	var make cmd.Command
	require.Eventually(t, func() bool { // no task service runs, so the command waits
		stream, err := r.Conn.JS().Stream(r.Ctx, subject.StreamCommands)
		require.NoError(t, err)
		for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
			m, err := stream.GetMsg(r.Ctx, seq)
			if err == nil && json.Unmarshal(m.Data, &make) == nil && make.Verb == cmd.CreateTask {
				return true
			}
		}
		return false
	}, maxWait, 5*time.Millisecond)
	p.Stop()
	r.command(log, cmd.Session, cmd.Delete, "d1", nil)
	r.gone(log)
	s, err := task.New(task.Config{Confirm: maxWait}, r.Deps("t"), struct{ tools.Toolbox }{})
	require.NoError(t, err)
	require.NoError(t, s.Start(r.Ctx))
	t.Cleanup(s.Stop)
	l := subject.Log{Tenant: log.Tenant, Kind: id.KindTask, Entity: make.Key}
	r.gone(l)
	make.ID += "-again"
	require.NoError(t, r.Send.Send(r.Ctx, make))
	require.Eventually(t, func() bool {
		return r.messages(subject.StreamCommands, subject.CommandFilterAll(cmd.Task)) == 0
	}, maxWait, 5*time.Millisecond)
	r.gone(l)
}
