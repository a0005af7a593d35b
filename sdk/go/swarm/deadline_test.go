package swarm_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

// Moments of a server whose clock is behind, and of one whose clock is ahead.
const (
	longAgo  = `"timestamp":"1999-01-01T00:00:00.000Z","deadline":"1999-01-01T01:00:00.000Z"`
	farAhead = `"timestamp":"2999-01-01T00:00:00.000Z","deadline":"2999-01-01T00:00:00.050Z"`
)

func TestATasksDeadlineIsByTheServersClock(t *testing.T) {
	finished, causes := make(chan struct{}), make(chan error, 1)
	opt := serve(t, func(p *peer) {
		p.registered()
		p.executeBy("early", longAgo)
		assert.Equal(t, "early", p.read("agent.task.result").get("taskId"))
		p.confirm()
		p.executeBy("late", farAhead)
		<-finished
		p.goodbye()
	})
	a := agent(t, opt, func(ctx context.Context, task *swarm.Task) (any, error) {
		if task.ID == "early" {
			return "done", ctx.Err()
		}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		close(finished)
		return nil, ctx.Err()
	})
	stop := run(t, a)
	require.ErrorIs(t, <-causes, context.DeadlineExceeded)
	require.NoError(t, stop())
}

func TestACallsDeadlineIsByTheServersClock(t *testing.T) {
	finished, causes := make(chan struct{}), make(chan error, 1)
	opt := serve(t, func(p *peer) {
		p.serviceRegistered()
		p.callBy("early", "sum", `{}`, longAgo)
		assert.Equal(t, "early", p.read("service.task.result").get("taskId"))
		p.callBy("late", "sum", `{}`, farAhead)
		assert.Equal(t, "late", p.read("service.error").get("taskId"))
		close(finished)
		p.say("service.unregistered", p.read("service.unregister").ID, `{}`)
		p.until()
	})
	s, err := swarm.NewService(swarm.ServiceOptions{Options: opt, Name: "Math", Description: "sums", Tools: []swarm.Tool{{
		ID: "sum", Description: "adds", InputSchema: map[string]any{"type": "object"}, Idempotent: true,
		Run: func(ctx context.Context, c *swarm.ToolRun) (any, error) {
			if c.ID == "early" {
				return "done", ctx.Err()
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil, ctx.Err()
		},
	}}})
	require.NoError(t, err)
	stop := run(t, s)
	require.ErrorIs(t, <-causes, context.DeadlineExceeded)
	<-finished
	require.NoError(t, stop())
}
