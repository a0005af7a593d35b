package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// sdkService offers tools until the test ends.
func sdkService(t *testing.T, url, serviceID string, tools ...swarm.Tool) *swarm.Service {
	t.Helper()
	s, err := swarm.NewService(swarm.ServiceOptions{Options: swarm.Options{URL: url}, ID: serviceID, Name: serviceID, Tools: tools})
	require.NoError(t, err)
	keep(t, s.Run, s.Connected)
	return s
}

// hold gives a task to an agent that does nothing by itself, and returns it: for what
// agents can do within a task. The agent sees all services first.
func hold(t *testing.T, url string, services int) *swarm.Task {
	t.Helper()
	ctx, held, done := sdkContext(t), make(chan *swarm.Task, 1), make(chan struct{})
	a := sdkAgent(t, url, "Holder", func(_ context.Context, task *swarm.Task) (any, error) {
		held <- task
		<-done
		return "done", nil
	})
	t.Cleanup(func() { close(done) })
	client, err := swarm.Dial(ctx, swarm.ClientOptions{Options: swarm.Options{URL: url}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	process.Eventually(t, "the services are known", func() bool {
		list, err := a.Services(ctx, swarm.Filter{})
		return err == nil && len(list) == services
	})
	_, err = client.CreateTask(ctx, swarm.NewTask{AgentName: "Holder", Data: 1, QueueTimeout: time.Minute})
	require.NoError(t, err)
	select {
	case task := <-held:
		return task
	case <-ctx.Done():
		require.Fail(t, "the agent gets no task")
		return nil
	}
}

// refusal is the error of the server that err is.
func refusal(t *testing.T, err error) *swarm.Error {
	t.Helper()
	var e *swarm.Error
	require.ErrorAs(t, err, &e)
	return e
}

// TestReplicasOfAServiceShareItsCalls: all calls are answered, by both; one that is busy
// gets none, and when neither is active they are refused.
func TestReplicasOfAServiceShareItsCalls(t *testing.T) {
	const calls, together = 100, 8
	_, addr := up(t, nil)
	url, ctx := "ws://"+addr, sdkContext(t)
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
	url := "ws://" + addr
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

// TestAServiceHurtsOnlyItsOwnCall: one hangs, one floods, one dies and one panics, while
// another one answers at all times.
func TestAServiceHurtsOnlyItsOwnCall(t *testing.T) {
	_, addr := up(t, nil)
	url, ctx := "ws://"+addr, sdkContext(t)
	sdkService(t, url, "well", swarm.Tool{ID: "run", Run: func(context.Context, *swarm.ToolRun) (any, error) { return "well", nil }})
	hangs := make(chan struct{}, 1)
	over := make(chan struct{})
	sdkService(t, url, "hangs", swarm.Tool{ID: "run", Run: func(context.Context, *swarm.ToolRun) (any, error) {
		hangs <- struct{}{}
		<-over // not even when its time is up
		return nil, errors.New("too late")
	}})
	t.Cleanup(func() { close(over) })
	sdkService(t, url, "panics", swarm.Tool{ID: "run", Run: func(context.Context, *swarm.ToolRun) (any, error) { panic("at the service") }})
	h := swarmRig{t: t, addr: addr}
	floods, dies := h.service("floods", "Floods", nil, object{"id": "run"}), h.service("dies", "Dies", nil, object{"id": "run"})
	task := hold(t, url, 5)
	call := func(service string, timeout time.Duration) error {
		_, err := task.CallService(ctx, service, "run", nil, swarm.Call{Timeout: timeout})
		return err
	}

	ends := map[string]chan error{}
	for service, timeout := range map[string]time.Duration{"hangs": 5 * time.Second, "floods": 5 * time.Second, "dies": time.Minute, "panics": time.Minute} {
		end := make(chan error, 1)
		ends[service] = end
		go func() { end <- call(service, timeout) }()
	}
	<-hangs
	flooded := make(chan int, 1)
	f := floods.Until("service.task.execute")
	go func() { flooded <- flood(floods, f.ID) }()
	dies.Until("service.task.execute")
	dies.Drop()

	var slowest time.Duration
	meanwhile := 0
	for open := len(ends); open > 0; meanwhile++ {
		began := time.Now()
		require.NoError(t, call("well", time.Minute), "while others are in trouble")
		slowest = max(slowest, time.Since(began))
		for service, end := range ends {
			select {
			case err := <-end:
				open--
				if delete(ends, service); service == "floods" {
					floods.Drop() // the server takes it up more slowly than it comes
				}
				e := refusal(t, err)
				t.Logf("%s: %s, after %d calls of another service", service, e.Code, meanwhile)
				require.Contains(t, map[string][]fault.Code{
					"hangs": {fault.ToolTimeout}, "dies": {fault.ServiceLost}, "panics": {fault.ToolFailed},
					"floods": {fault.ToolTimeout, fault.ServiceLost}, // whether its socket is closed first
				}[service], fault.Code(e.Code))
				require.NotContains(t, strings.ToLower(e.Message), "panic")
			default:
			}
		}
	}
	t.Logf("%d calls meanwhile, the slowest took %d ms; the flood ended after %d frames", meanwhile, slowest.Milliseconds(), <-flooded)
	require.NoError(t, call("well", time.Minute))
	require.Equal(t, string(fault.ServiceLost), lostOrGone(t, call("dies", time.Minute)))
}

// lostOrGone is the code with which a call of a service that has died is refused, the
// same whether its place is still kept or not.
func lostOrGone(t *testing.T, err error) string {
	t.Helper()
	e := refusal(t, err)
	if e.Code == string(fault.ServiceBusy) || e.Code == string(fault.ServiceNotFound) {
		return string(fault.ServiceLost)
	}
	return e.Code
}

// flood says as much about a call as the server takes, and returns how often it could
// until the connection ended.
func flood(s *client.Swarm, call string) int {
	frame := `{"id":"n","type":"service.task.notification","content":{"taskId":"` + call + `","notification":{"type":"info","message":"` + strings.Repeat("x", 1000) + `"}}}`
	n := 0
	for s.Raw(frame) == nil {
		n++
	}
	return n
}
