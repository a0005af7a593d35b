package task_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/task"
	"github.com/waggle-dev/waggle/services/tools"
)

// held is a call within a task whose tool runs until it is let go, or its worker dies. All
// further runs succeed at once.
type held struct {
	*rig
	agent  *agent
	taskID string
	begun  chan struct{}
	finish chan struct{}
	queue  jetstream.Stream
}

func hold(t *testing.T, tool string, replicas ...string) (*held, []*task.Service) {
	t.Helper()
	h := &held{rig: newRig(t), begun: make(chan struct{}, 10), finish: make(chan struct{})}
	h.box.play = func(ctx context.Context, c tools.Call, _ func(tools.Notification)) (tools.Result, error) {
		h.begun <- struct{}{}
		if h.box.made() > 1 {
			return tools.Result{Data: c.Arguments}, nil
		}
		select {
		case <-h.finish:
			return tools.Result{Data: c.Arguments}, nil
		case <-ctx.Done():
			return tools.Result{}, fault.New(fault.ToolLost)
		}
	}
	var all []*task.Service
	for _, name := range replicas {
		all = append(all, h.start(name, task.Config{}))
	}
	h.agent = h.join(cmd.Participant{ID: "w1", Name: "W"})
	h.taskID = h.submit("", cmd.NewTask{AgentName: "W"})
	hears[event.TaskAssignedData](h.agent)
	h.agent.says(h.taskID, cmd.CallTool, cmd.ToolRequest{
		TaskID: h.taskID, AgentID: "w1", RequestID: "f1", Kind: tools.KindService, Server: "shop", Tool: tool, Arguments: json.RawMessage(`{"n":1}`),
	})
	<-h.begun
	var err error
	h.queue, err = h.Conn.JS().Stream(h.Ctx, subject.StreamCommands)
	require.NoError(t, err)
	return h, all
}

// queued returns the newest command for the call that is in the queue.
func (h *held) queued() *jetstream.RawStreamMsg {
	h.T.Helper()
	m, err := h.queue.GetLastMsgForSubject(h.Ctx, subject.CommandFilterAll(id.MustName("task-call")))
	require.NoError(h.T, err)
	return m
}

// copy queues the call again as a process does that has taken the task over, and waits until
// a worker has dealt with that: the tool has begun as often as before.
func (h *held) copy(runs int) {
	h.T.Helper()
	var c cmd.Command
	require.NoError(h.T, json.Unmarshal(h.queued().Data, &c))
	c.ID = "copy"
	require.NoError(h.T, h.Send.Send(h.Ctx, c))
	require.Eventually(h.T, func() bool {
		info, err := h.queue.Info(h.Ctx, jetstream.WithSubjectFilter(subject.CommandFilterAll(id.MustName("task-call"))))
		require.NoError(h.T, err)
		left := uint64(0)
		for _, n := range info.State.Subjects {
			left += n
		}
		return left == 1 || h.box.made() > runs
	}, maxWait, 10*time.Millisecond)
	require.Equal(h.T, runs, h.box.made(), "the tool runs once while it is running")
}

// TestACallThatIsQueuedAgainRunsOnce: a process that takes a task over queues the calls that
// are open once more.
func TestACallThatIsQueuedAgainRunsOnce(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"buy", "price"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			h, _ := hold(t, tool, "a", "b")
			h.copy(1)
			close(h.finish)
			out := hears[event.CallFinishedData](h.agent)
			require.Equal(t, "success", out.Status)
			require.Equal(t, 1, h.box.made())
		})
	}
}

// TestTheOwnerOfACallDies: a copy of its command that came before changes nothing.
func TestTheOwnerOfACallDies(t *testing.T) {
	t.Parallel()
	for tool, want := range outcomesOfLost {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			h, all := hold(t, tool, "a")
			h.copy(1)
			all[0].Stop()
			h.start("b", task.Config{})
			out := hears[event.CallFinishedData](h.agent)
			require.Equal(t, []string{want.status, want.code, "f1"}, []string{out.Status, out.Code, out.CallRequest})
			require.Equal(t, want.runs, h.box.made())
		})
	}
}

// outcomesOfLost are what becomes of a call whose worker died: by the tool.
var outcomesOfLost = map[string]struct {
	status, code string
	runs         int
}{"price": {"success", "", 2}, "buy": {"unknown", string(fault.ServiceLost), 1}}

// TestACallOutlivesItsCommand: a backup may hold the claim of a call without the command that
// made it. The look at the task after the restore brings the call to its end.
func TestACallOutlivesItsCommand(t *testing.T) {
	t.Parallel()
	for tool, want := range outcomesOfLost {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			h, all := hold(t, tool, "a")
			require.NoError(t, h.queue.DeleteMsg(h.Ctx, h.queued().Sequence))
			all[0].Stop()
			h.start("b", task.Config{})
			h.Command(cmd.Command{
				ID: "restore", Service: cmd.Task, Verb: cmd.CheckTask, Tenant: tenant, Key: id.EntityFromExternal(h.taskID), Source: cmd.SourceRestore,
			}, nil)
			out := hears[event.CallFinishedData](h.agent)
			require.Equal(t, want.status, out.Status)
			require.Equal(t, want.runs, h.box.made())
		})
	}
}

// TestACallOutsideWithTheIDOfACallWithin: neither keeps the other from running.
func TestACallOutsideWithTheIDOfACallWithin(t *testing.T) {
	t.Parallel()
	h, _ := hold(t, "buy", "a")
	var in event.CallStartedData
	var c cmd.Command
	require.NoError(t, json.Unmarshal(h.queued().Data, &c))
	require.NoError(t, c.Decode(&in))
	var out cmd.ToolOutcome
	require.NoError(t, h.ask(cmd.RunTool, "c", toolCall(in.CallID, "buy"), &out))
	require.Equal(t, "success", out.Status)
	h.copy(2)
	close(h.finish)
	require.Equal(t, "success", hears[event.CallFinishedData](h.agent).Status)
	require.Equal(t, 2, h.box.made())
}
