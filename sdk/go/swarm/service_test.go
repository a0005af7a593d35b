package swarm_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

func (p *peer) serviceRegistered() {
	assert.Equal(p.t, "/ws/asp/service", p.req.URL.Path)
	f := p.read("service.register")
	assert.JSONEq(p.t, `{"name":"Math","capabilities":[],"status":"active","description":"sums","tools":[
		{"id":"sum","description":"adds","idempotent":true,"inputSchema":{"type":"object"}}]}`, string(f.Content))
	p.say("service.registered", f.ID, `{"id":"math","name":"Math","status":"active"}`)
}

func (p *peer) call(id, tool, params string) {
	p.callBy(id, tool, params, `"timestamp":"","deadline":"2999-01-01T00:00:00.000Z"`)
}

// callBy makes a call with members of the metadata.
func (p *peer) callBy(id, tool, params, times string) {
	p.send(`{"id":"` + id + `","type":"service.task.execute","content":{"toolId":"` + tool + `","functionName":"` + tool + `","params":` + params +
		`,"metadata":{"taskId":"t","priority":"normal",` + times + `}}}`)
}

func TestAServiceRunsItsTools(t *testing.T) {
	ready, finished, cut := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	opt := serve(
		t,
		func(p *peer) {
			p.serviceRegistered()
			p.call("u1", "sum", `{"a":1,"b":2}`)
			f := p.read("service.task.notification")
			assert.Equal(t, "u1", f.get("taskId"))
			p.say("notification.received", f.ID, `{"message":"x"}`)
			assert.JSONEq(t, `{"taskId":"u1","serviceId":"math","result":3}`, string(p.read("service.task.result").Content))
			p.call("u2", "none", `{}`)
			assert.JSONEq(t, `{"taskId":"u2","serviceId":"math","error":"the service has no tool \"none\"","code":"TOOL_NOT_FOUND"}`, string(p.read("service.error").Content))
			p.call("u3", "sum", `{"a":"x"}`)
			assert.Equal(t, "INVALID_INPUT", p.read("service.error").get("code"))
			p.call("u4", "sum", `{"a":-1}`)
			assert.Equal(t, "no negative numbers", p.read("service.error").get("error"))
			close(ready)
			p.say("service.status.updated", p.read("service.status").ID, `{}`)
			p.say("notification.received", p.read("service.notification").ID, `{}`)
			p.call("u5", "sum", `{"a":0}`)
			p.read("service.task.notification")
			p.cut() // the call is lost with the connection
		},
		func(p *peer) {
			f := p.read("service.register")
			assert.Equal(t, "math", f.get("id"))
			assert.Equal(t, "maintenance", f.get("status"))
			p.say("service.registered", f.ID, `{"id":"math"}`)
			close(finished)
			p.say("service.unregistered", p.read("service.unregister").ID, `{}`)
			p.until()
		},
	)
	s, err := swarm.NewService(swarm.ServiceOptions{Options: opt, Name: "Math", Description: "sums", Tools: []swarm.Tool{{
		ID: "sum", Description: "adds", InputSchema: map[string]any{"type": "object"}, Idempotent: true,
		Run: func(ctx context.Context, c *swarm.ToolRun) (any, error) {
			var in struct{ A, B int }
			if err := c.Decode(&in); err != nil {
				return nil, err
			}
			if in.A < 0 {
				return nil, errors.New("no negative numbers")
			}
			err := c.Notify(ctx, swarm.Notification{Type: swarm.Progress, Message: "adds"})
			if in.A == 0 {
				<-ctx.Done()
				cut <- errors.Join(err, context.Cause(ctx))
			}
			return in.A + in.B, nil
		},
	}}})
	require.NoError(t, err)
	stop := run(t, s)
	ctx := bounded(t)
	require.NoError(t, s.Connected(ctx))
	require.Equal(t, "math", s.ID())
	<-ready
	require.NoError(t, s.SetStatus(ctx, swarm.StatusMaintenance, "soon"))
	require.NoError(t, s.NotifyClient(ctx, "client-001", swarm.Notification{Message: "hi"}))
	require.ErrorIs(t, <-cut, swarm.ErrInterrupted)
	<-finished
	require.NoError(t, s.Connected(ctx))
	require.NoError(t, stop())
	_, err = swarm.NewService(swarm.ServiceOptions{Name: "x", Tools: []swarm.Tool{{ID: "a"}}})
	require.ErrorContains(t, err, `tool "a"`)
}
