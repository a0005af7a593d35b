package task_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/payload"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/task"
	"github.com/waggle-dev/waggle/services/tools"
)

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
