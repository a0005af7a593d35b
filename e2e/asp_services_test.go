package e2e_test

import (
	"context"
	"errors"
	"strings"
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
func sdkService(t *testing.T, o swarm.Options, serviceID string, tools ...swarm.Tool) *swarm.Service {
	t.Helper()
	s, err := swarm.NewService(swarm.ServiceOptions{Options: o, ID: serviceID, Name: serviceID, Tools: tools})
	require.NoError(t, err)
	keep(t, s.Run, s.Connected)
	return s
}

// hold gives a task to an agent that does nothing by itself, and returns it: for what
// agents can do within a task. The agent sees all services first.
func hold(t *testing.T, o swarm.Options, services int) *swarm.Task {
	t.Helper()
	ctx, held, done := sdkContext(t), make(chan *swarm.Task, 1), make(chan struct{})
	a := sdkAgent(t, o, "Holder", func(_ context.Context, task *swarm.Task) (any, error) {
		held <- task
		<-done
		return "done", nil
	})
	t.Cleanup(func() { close(done) })
	client, err := swarm.Dial(ctx, swarm.ClientOptions{Options: o})
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

// TestAServiceHurtsOnlyItsOwnCall: one hangs, one floods, one dies and one panics, while
// another one answers at all times.
func TestAServiceHurtsOnlyItsOwnCall(t *testing.T) {
	t.Parallel()
	p := one.forTenant(t)
	url, ctx := p.sdk(), sdkContext(t)
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
	h := p.swarm()
	floods, dies := h.service("floods", "Floods", nil, object{"id": "run"}), h.service("dies", "Dies", nil, object{"id": "run"})
	task := hold(t, url, 5)
	call := func(service string, timeout time.Duration) error {
		_, err := task.CallService(ctx, service, "run", nil, swarm.Call{Timeout: timeout})
		return err
	}

	type end struct {
		service string
		err     error
	}
	ends := make(chan end, 4)
	for service, timeout := range map[string]time.Duration{"hangs": 10 * time.Second, "floods": 10 * time.Second, "dies": time.Minute, "panics": time.Minute} {
		go func() { ends <- end{service, call(service, timeout)} }()
	}
	receive(t, hangs, "the call that hangs")
	flooded := make(chan int, 1)
	f := floods.Until("service.task.execute")
	go func() { flooded <- flood(floods, f.ID) }()
	dies.Until("service.task.execute")
	dies.Drop()

	for open := cap(ends); open > 0; open-- {
		for range 20 {
			require.NoError(t, call("well", time.Minute), "while others are in trouble")
		}
		over := receive(t, ends, "the end of a call")
		if over.service == "floods" {
			floods.Drop() // the server takes it up more slowly than it comes
		}
		e := refusal(t, over.err)
		t.Logf("%s: %s", over.service, e.Code)
		require.Contains(t, map[string][]fault.Code{
			"hangs": {fault.ToolTimeout}, "dies": {fault.ServiceLost}, "panics": {fault.ToolFailed},
			"floods": {fault.ToolTimeout, fault.ServiceLost}, // whether its socket is closed first
		}[over.service], fault.Code(e.Code))
		require.NotContains(t, strings.ToLower(e.Message), "panic")
	}
	t.Logf("the flood ended after %d frames", receive(t, flooded, "the end of the flood"))
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
