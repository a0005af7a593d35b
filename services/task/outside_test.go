package task_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/task"
	"github.com/waggle-dev/waggle/services/tools"
)

func toolCall(callID, tool string) cmd.ToolRequest {
	return cmd.ToolRequest{CallID: callID, Kind: tools.KindService, Server: "shop", Tool: tool, Arguments: json.RawMessage(`{"n":1}`)}
}

// TestAToolOutsideOfTasksIsRunOnce: however often it is asked for under the same id, at
// once and later, by whichever replica; all have the same answer.
func TestAToolOutsideOfTasksIsRunOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	begun, finish := make(chan struct{}, 10), make(chan struct{})
	r.box.play = func(_ context.Context, c tools.Call, _ func(tools.Notification)) (tools.Result, error) {
		begun <- struct{}{}
		<-finish
		return tools.Result{Data: c.Arguments}, nil
	}
	a, b := r.start("a", task.Config{}), r.start("b", task.Config{})
	outcomes := make([]cmd.ToolOutcome, 6)
	var wg sync.WaitGroup
	ask := func(i int) {
		wg.Go(func() {
			if err := r.ask(cmd.RunTool, "c", toolCall("same", "buy"), &outcomes[i]); err != nil {
				outcomes[i].Error = err.Error()
			}
		})
	}
	for i := range 3 {
		ask(i)
	}
	<-begun
	for i := range 3 {
		ask(3 + i)
	}
	close(finish)
	wg.Wait()
	for _, o := range outcomes {
		require.Equal(t, outcomes[0], o)
	}
	require.Equal(t, []string{"success", `{"n":1}`, "The shop"}, []string{outcomes[0].Status, string(outcomes[0].Result), outcomes[0].ServerName})

	a.Stop()
	b.Stop()
	r.start("c", task.Config{})
	var later cmd.ToolOutcome
	require.NoError(t, r.ask(cmd.RunTool, "c", toolCall("same", "buy"), &later))
	require.Equal(t, outcomes[0], later)
	require.Equal(t, 1, r.box.made())
	require.Equal(t, "call.started call.finished", types(r.All(logOf(id.KindCall, "same"))))
	require.NoError(t, r.ask(cmd.RunTool, "c", toolCall("", "buy"), &later))
	require.NoError(t, r.ask(cmd.RunTool, "c", toolCall("", "buy"), &later))
	require.Equal(t, 3, r.box.made(), "without an id each is another one")
	require.Equal(t, "c", r.box.calls[0].ClientID)
	var list cmd.ToolList
	require.NoError(t, r.ask(cmd.ListTools, "c", cmd.ToolsOf{Kind: tools.KindService, Server: "shop"}, &list))
	require.Equal(t, []any{"The shop", "price", true, false}, []any{list.Name, list.Tools[0].ID, list.Tools[0].Idempotent, list.Tools[1].Idempotent})
}

// TestACallThatWasNotBegunIsTriedAgain: who repeats it need not take another id.
func TestACallThatWasNotBegunIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.box.play = func(context.Context, tools.Call, func(tools.Notification)) (tools.Result, error) {
		if r.box.made() < 3 {
			return tools.Result{}, fault.Newf(fault.ServiceBusy, "Later.")
		}
		return tools.Result{Text: "sold", IsError: true}, nil
	}
	r.start("a", task.Config{})
	for range 2 {
		err := r.ask(cmd.RunTool, "c", toolCall("same", "buy"), nil)
		isFault(t, err, fault.ServiceBusy)
		require.ErrorContains(t, err, "Later.")
	}
	for range 2 {
		var out cmd.ToolOutcome
		require.NoError(t, r.ask(cmd.RunTool, "c", toolCall("same", "buy"), &out))
		require.Equal(t, []string{"error", string(fault.ToolFailed), `"sold"`}, []string{out.Status, out.Code, string(out.Result)})
	}
	require.Equal(t, 3, r.box.made())
}

// TestAWorkerDiesDuringACallOutsideOfTasks: only a tool that bears repetition is run again,
// and who repeats the request learns the same.
func TestAWorkerDiesDuringACallOutsideOfTasks(t *testing.T) {
	t.Parallel()
	for tool, want := range outcomesOfLost {
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
			first := make(chan error, 1)
			var one, two cmd.ToolOutcome
			go func() { first <- r.ask(cmd.RunTool, "c", toolCall("same", tool), &one) }()
			<-begun
			r.start("b", task.Config{})
			s.Stop()
			isFault(t, <-first, fault.BusUnavailable) // which says: try again
			require.NoError(t, r.ask(cmd.RunTool, "c", toolCall("same", tool), &one))
			require.NoError(t, r.ask(cmd.RunTool, "c", toolCall("same", tool), &two))
			require.Equal(t, []string{want.status, want.code}, []string{one.Status, one.Code})
			require.Equal(t, one, two)
			require.Equal(t, want.runs, r.box.made())
		})
	}
}

// TestLargeCallsOutsideOfTasks: arguments and outcome are stored beside the log, and are
// whole for each who asks.
func TestLargeCallsOutsideOfTasks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.box.play = func(_ context.Context, c tools.Call, _ func(tools.Notification)) (tools.Result, error) {
		return tools.Result{Data: c.Arguments}, nil
	}
	r.start("a", task.Config{})
	call := toolCall("same", "buy")
	call.Arguments = large(300 << 10)
	for range 2 {
		var out cmd.ToolOutcome
		require.NoError(t, r.ask(cmd.RunTool, "c", call, &out))
		require.Equal(t, "success", out.Status)
		require.Equal(t, string(call.Arguments), string(out.Result))
	}
	require.Equal(t, 1, r.box.made())
	for _, e := range r.All(logOf(id.KindCall, "same")) {
		require.Less(t, len(e.Data), 10<<10)
	}
}
