//go:build nightly

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

// TestReplicasOfAServiceShareItsCalls: all calls are answered, by both; one that is busy
// gets none, and when neither is active they are refused.
func TestReplicasOfAServiceShareItsCalls(t *testing.T) {
	const calls, together = 100, 8
	_, addr := up(t, nil)
	url, ctx := swarm.Options{URL: "ws://" + addr}, sdkContext(t)
	var counts [2]atomic.Int64
	replicas := make([]*swarm.Service, len(counts))
	for i := range replicas {
		replicas[i] = sdkService(t, url, "counter", swarm.Tool{ID: "count", Run: func(context.Context, *swarm.ToolRun) (any, error) {
			return counts[i].Add(1), nil
		}})
	}
	task := hold(t, url, 1)
	one := func() error {
		_, err := task.CallService(ctx, "counter", "count", nil, swarm.Call{})
		return err
	}
	share := func() [2]int64 {
		for i := range counts {
			counts[i].Store(0)
		}
		var wg sync.WaitGroup
		var next atomic.Int64
		for range together {
			wg.Go(func() {
				for next.Add(1) <= calls {
					assert.NoError(t, one())
				}
			})
		}
		wg.Wait()
		return [2]int64{counts[0].Load(), counts[1].Load()}
	}
	began := time.Now()
	both := share()
	t.Logf("%d calls by two replicas: %v in %d ms", calls, both, time.Since(began).Milliseconds())
	require.EqualValues(t, calls, both[0]+both[1])
	require.Greater(t, min(both[0], both[1]), int64(calls/3), "half each, nearly")

	// The directory shows the status of a service a moment later.
	require.NoError(t, replicas[0].SetStatus(ctx, swarm.StatusBusy, "a while"))
	process.Eventually(t, "the busy one is left alone", func() bool {
		before := counts[0].Load()
		for range 4 {
			require.NoError(t, one())
		}
		return counts[0].Load() == before
	})
	require.Equal(t, [2]int64{0, calls}, share(), "one is busy")
	require.NoError(t, replicas[1].SetStatus(ctx, swarm.StatusMaintenance, "tonight"))
	process.Eventually(t, "no service takes calls", func() bool { return one() != nil })
	for i := range counts {
		counts[i].Store(0)
	}
	for range 5 {
		require.Equal(t, string(fault.ServiceBusy), refusal(t, one()).Code)
	}
	require.Zero(t, counts[0].Load()+counts[1].Load())
	require.NoError(t, replicas[0].SetStatus(ctx, swarm.StatusActive, ""))
	process.Eventually(t, "calls are taken again", func() bool { return one() == nil })
	require.Equal(t, [2]int64{calls, 0}, share(), "one is in maintenance")
}

// TestWhatDoesNotFitASchemaIsRefused: with the place in the JSON, and before the tool is
// run or the agent sees its result. Within a task and outside of one it is the same.
func TestWhatDoesNotFitASchemaIsRefused(t *testing.T) {
	_, addr := up(t, nil)
	url := swarm.Options{URL: "ws://" + addr}
	var runs atomic.Int64
	sdkService(t, url, "strict", swarm.Tool{
		ID:           "sum",
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"list":{"type":"array","items":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}}},"required":["list"]}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"sum":{"type":"object","properties":{"value":{"type":"number"}}}}}`),
		Run: func(_ context.Context, c *swarm.ToolRun) (any, error) {
			runs.Add(1)
			var in struct{ List []struct{ N int } }
			if err := c.Decode(&in); err != nil {
				return nil, err
			}
			sum := 0
			for _, x := range in.List {
				sum += x.N
			}
			var value any = sum
			if sum > 10 {
				value = "many"
			}
			return map[string]any{"sum": map[string]any{"value": value}}, nil
		},
	})
	h := swarmRig{t: t, addr: addr}
	a, c := h.agent("caller", "Caller", nil), h.client()
	task := c.Get("client.agent.task.create.response", "client.agent.task.create.request", object{"agentName": "Caller", "taskData": 1}).Text("taskId")
	a.Until("task.execute")
	process.Eventually(t, "the service is known", func() bool {
		return a.Ask("service.tools.list", object{"serviceId": "strict"}).Type == "service.tools.list.response"
	})
	idle := h.agent("idle", "Idle", nil) // has no task that its calls could be part of
	for _, within := range []bool{true, false} {
		call := func(list string) client.SwarmFrame {
			caller := a
			content := object{"serviceId": "strict", "toolId": "sum", "params": json.RawMessage(`{"list":` + list + `}`)}
			if within {
				content["taskId"] = task
			} else {
				caller = idle
			}
			return caller.Ask("service.task.execute", content)
		}
		refused := func(f client.SwarmFrame, code fault.Code, path string) {
			require.Equal(t, string(code), f.Text("code"), "%s", f.Content)
			require.Contains(t, f.Text("error"), path)
		}
		before := runs.Load()
		refused(call(`[{"n":1},{"n":"two"}]`), fault.ToolBadInput, "/list/1/n")
		refused(call(`{"n":1}`), fault.ToolBadInput, "/list")
		require.Equal(t, before, runs.Load(), "the service is not troubled with it")
		refused(call(`[{"n":5},{"n":6}]`), fault.BadOutput, "/sum/value")
		require.Equal(t, before+1, runs.Load())
		require.JSONEq(t, `{"sum":{"value":3}}`, string(call(`[{"n":1},{"n":2}]`).Member("result")))
	}
	a.Say("agent.task.result", object{"taskId": task, "result": "done"})
	c.Until("client.agent.task.result")
	require.NotContains(t, fmt.Sprint(c.Got()), "many", "a message beyond the limit reaches no client")
}
