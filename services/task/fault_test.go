package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/eventlog"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/task"
	"github.com/waggle-dev/waggle/services/tools"
)

// TestTheServiceStopsAtEveryStep: whatever event is the last one that a replica lived to
// see, in the log of the task, of its child or of the client, the next replica brings
// both tasks to their one end, and the client has every event once and in order.
func TestTheServiceStopsAtEveryStep(t *testing.T) {
	t.Parallel()
	steps := story(newRig(t), "w", -1)
	require.Greater(t, steps, 15)
	const lanes = 4
	for lane := range lanes {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for at := lane; at < steps; at += lanes {
				story(r, fmt.Sprint("s", at), at)
			}
		})
	}
	t.Logf("stopped after each of %d events", steps)
}

// story runs a task with a tool call and a child, by agents that the test plays, and stops the
// service at the event with the given number. It returns the number of events.
func story(r *rig, name string, stopAt int) int {
	r.box.play = func(_ context.Context, c tools.Call, _ func(tools.Notification)) (tools.Result, error) {
		return tools.Result{Data: c.Arguments}, nil
	}
	s := r.start(name+"a", task.Config{})
	defer func() { s.Stop() }()
	me := r.client()
	parent, child := name+"-parent", name+"-child"
	boss := r.join(cmd.Participant{ID: name + "-boss", Name: name + "-Boss"})
	helper := r.join(cmd.Participant{ID: name + "-helper", Name: name + "-Helper"})
	defer func() { boss.leave(); helper.leave() }()
	logs := []subject.Log{logOf(id.KindTask, parent), logOf(id.KindTask, child), logOf(id.KindInbox, me.ClientID)}
	seen := r.count(logs...)
	over, stopped := make(chan struct{}), make(chan struct{})
	stop := func() {
		if stopAt < 0 {
			return
		}
		seen.until(r.Ctx, stopAt, over)
		s.Stop()
		s = r.start(name+"b", task.Config{})
	}
	go func() { defer close(stopped); stop() }()
	r.command(parent, cmd.CreateTask, "create", cmd.NewTask{
		TaskID: parent, ClientID: me.ClientID, AgentName: boss.participant.Name, Data: json.RawMessage(`1`),
	}, "")
	boss.awaits(event.TaskAssigned)
	boss.says(parent, cmd.CallTool, cmd.ToolRequest{TaskID: parent, AgentID: boss.participant.ID, Kind: tools.KindService, Server: "shop", Tool: "price"})
	boss.awaits(event.CallFinished)
	boss.says(parent, cmd.SpawnTask, cmd.SpawnChild{
		TaskID: parent, AgentID: boss.participant.ID, ChildID: child, TargetName: helper.participant.Name, Data: json.RawMessage(`2`),
	})
	helper.awaits(event.TaskAssigned)
	helper.done(child, "part")
	boss.awaits(event.ChildFinished)
	boss.done(parent, "whole")
	inbox := r.Until(logOf(id.KindInbox, me.ClientID), event.TaskFinished, 2)
	close(over)
	<-stopped
	inOrder(r.T, r, parent, inbox)
	inOrder(r.T, r, child, inbox)
	for _, one := range []string{parent, child} {
		ends := 0
		for _, e := range r.All(logOf(id.KindTask, one)) {
			if e.Type == event.TaskFinished {
				ends++
			}
		}
		require.Equal(r.T, 1, ends, one)
	}
	events := 0
	for _, l := range logs {
		events += len(r.All(l))
	}
	return events
}

// awaits waits until the agent gets a message of the type. It skips repeats after a crash, as
// agents do.
func (a *agent) awaits(typ event.Type) {
	a.T.Helper()
	for {
		select {
		case e := <-a.heard:
			if e.Type == typ {
				return
			}
		case <-a.Ctx.Done():
			require.Fail(a.T, "nothing was said", "%s waits for %s", a.participant.ID, typ)
		}
	}
}

// counter counts the events of some logs.
type counter struct{ events chan struct{} }

func (r *rig) count(logs ...subject.Log) *counter {
	c := &counter{events: make(chan struct{}, 1000)}
	ctx, cancel := context.WithCancel(r.Ctx)
	done := make(chan struct{})
	for _, l := range logs {
		go func() {
			for _, err := range r.Log.Tail(ctx, l, eventlog.Cursor{}) {
				if err != nil {
					break
				}
				c.events <- struct{}{}
			}
			done <- struct{}{}
		}()
	}
	r.T.Cleanup(func() {
		cancel()
		for range logs {
			<-done
		}
	})
	return c
}

// until returns when more than n events have been seen, or all is over: a task that had
// to wait for its agent has more events than one that had not.
func (c *counter) until(ctx context.Context, n int, over <-chan struct{}) {
	for range n + 1 {
		select {
		case <-c.events:
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}
