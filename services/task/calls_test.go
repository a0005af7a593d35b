package task_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/payload"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/task"
	"github.com/waggle-dev/waggle/services/tools"
)

// TestAWorkerDiesDuringACall: an idempotent tool runs again. The effect of any other tool is
// unknown, so it does not run again.
func TestAWorkerDiesDuringACall(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]struct {
		status, code string
		runs         int
	}{
		"price": {"success", "", 2},
		"buy":   {"unknown", string(fault.ServiceLost), 1},
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			begun := make(chan struct{}, 10)
			r.box.play = func(ctx context.Context, c tools.Call, _ func(tools.Notification)) (tools.Result, error) {
				begun <- struct{}{}
				if r.box.made() > 1 {
					return tools.Result{Data: c.Arguments}, nil
				}
				<-ctx.Done() // the worker dies
				return tools.Result{}, fault.New(fault.ToolLost)
			}
			s := r.start("a", task.Config{})
			a := r.join(cmd.Participant{ID: "w1", Name: "W"})
			taskID := r.submit("", cmd.NewTask{AgentName: "W"})
			hears[event.TaskAssignedData](a)
			a.says(taskID, cmd.CallTool, cmd.ToolRequest{
				TaskID: taskID, AgentID: "w1", RequestID: "f1", Kind: tools.KindService, Server: "shop", Tool: tool, Arguments: json.RawMessage(`{"n":1}`),
			})
			<-begun
			s.Stop()
			r.start("b", task.Config{})
			out := hears[event.CallFinishedData](a)
			require.Equal(t, want.status, out.Status)
			require.Equal(t, want.code, out.Code)
			require.Equal(t, "f1", out.CallRequest)
			require.Equal(t, want.runs, r.box.made())
		})
	}
}

// TestToolsFail: what a tool says is told, however large it is.
func TestToolsFail(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.box.play = func(_ context.Context, c tools.Call, _ func(tools.Notification)) (tools.Result, error) {
		switch c.Tool {
		case "missing":
			return tools.Result{}, fault.New(fault.ToolNotFound)
		case "lost":
			return tools.Result{}, fault.New(fault.ServiceLost)
		}
		huge := make([]byte, 300<<10)
		for i := range huge {
			huge[i] = 'x'
		}
		return tools.Result{Text: string(huge)}, nil
	}
	r.start("a", task.Config{})
	a := r.join(cmd.Participant{ID: "w1", Name: "W"})
	taskID := r.submit("", cmd.NewTask{AgentName: "W"})
	hears[event.TaskAssignedData](a)
	for _, c := range []struct{ tool, status, code string }{
		{"missing", "error", string(fault.ToolNotFound)},
		{"lost", "unknown", string(fault.ServiceLost)},
		{"huge", "success", ""},
	} {
		a.says(taskID, cmd.CallTool, cmd.ToolRequest{TaskID: taskID, AgentID: "w1", Kind: tools.KindService, Server: "shop", Tool: c.tool})
		out := hears[event.CallFinishedData](a)
		require.Equal(t, c.status, out.Status, c.tool)
		require.Equal(t, c.code, out.Code, c.tool)
		require.NoError(t, payload.New(r.Conn).Fill(r.Ctx, tenant, &out))
		if c.status == callSuccess {
			require.Len(t, out.Result, 300<<10+len(`""`))
		}
	}
}

const callSuccess = "success"
