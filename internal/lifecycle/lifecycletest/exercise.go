// Package lifecycletest is the conformance suite of lifecycle.Component.
package lifecycletest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/lifecycle"
)

// Exercise runs components through the uses and abuses that the contract allows, and fails when a call hangs or a
// goroutine stays behind. fresh returns a new component, not yet started, at each call; it creates shared parts (a
// connection, a server) before.
func Exercise(t *testing.T, fresh func() lifecycle.Component) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, lifecycle.Component)
	}{
		{"start, drain, stop", ordinary},
		{"stop without a drain", stopOnly},
		{"stop twice", stopTwice},
		{"stop before start", stopBeforeStart},
		{"drain before start", drainBeforeStart},
		{"drain after stop", drainAfterStop},
		{"start with a dead context", startDead},
		{"the context of the start dies later", contextDies},
		{"drain with a dead context", drainDead},
		{"stop during start", stopDuringStart},
		{"stop during drain", stopDuringDrain},
	} {
		t.Run(c.name, func(t *testing.T) { contained(t, fresh(), c.run) })
	}
}

// StartFails checks a component whose Start must fail: it leaves nothing behind, and may still be drained and
// stopped.
func StartFails(t *testing.T, broken func() lifecycle.Component) {
	t.Helper()
	t.Run("start fails", func(t *testing.T) {
		contained(t, broken(), func(t *testing.T, c lifecycle.Component) {
			within(t, "Start", func() { require.Error(t, c.Start(t.Context())) })
			noGoroutines(t)
			within(t, "Drain", func() { require.NoError(t, c.Drain(t.Context())) })
			within(t, "Stop", c.Stop)
		})
	})
}

func ordinary(t *testing.T, c lifecycle.Component) {
	require.NotEmpty(t, c.Name())
	require.Equal(t, c.Name(), c.Name())
	failed := c.Failed()
	start(t, c)
	require.Equal(t, failed, c.Failed(), "Failed is the same channel at every call")
	healthy(t, c)
	within(t, "Drain", func() { require.NoError(t, c.Drain(t.Context())) })
	within(t, "Stop", c.Stop)
}

func stopOnly(t *testing.T, c lifecycle.Component) {
	start(t, c)
	within(t, "Stop", c.Stop)
}

func stopTwice(t *testing.T, c lifecycle.Component) {
	start(t, c)
	var both sync.WaitGroup
	both.Go(c.Stop)
	both.Go(c.Stop)
	within(t, "two calls of Stop at once", both.Wait)
	within(t, "Stop", c.Stop)
}

func stopBeforeStart(t *testing.T, c lifecycle.Component) {
	within(t, "Stop", c.Stop)
	within(t, "Stop", c.Stop)
	within(t, "Start", func() { require.Error(t, c.Start(t.Context()), "Start after Stop") })
	within(t, "Stop", c.Stop)
}

func drainBeforeStart(t *testing.T, c lifecycle.Component) {
	within(t, "Drain", func() { require.NoError(t, c.Drain(t.Context())) })
	within(t, "Stop", c.Stop)
}

func drainAfterStop(t *testing.T, c lifecycle.Component) {
	start(t, c)
	within(t, "Stop", c.Stop)
	within(t, "Drain", func() { require.NoError(t, c.Drain(t.Context())) })
	within(t, "Stop", c.Stop)
}

// startDead does not require an error: a component that starts in an instant need not check its context.
func startDead(t *testing.T, c lifecycle.Component) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	within(t, "Start", func() {
		if err := c.Start(ctx); err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
	})
	within(t, "Stop", c.Stop)
}

func contextDies(t *testing.T, c lifecycle.Component) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	within(t, "Start", func() { require.NoError(t, c.Start(ctx)) })
	cancel()
	healthy(t, c)
	within(t, "Drain", func() { require.NoError(t, c.Drain(t.Context())) })
	healthy(t, c)
	within(t, "Stop", c.Stop)
}

func drainDead(t *testing.T, c lifecycle.Component) {
	start(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	within(t, "Drain", func() {
		if err := c.Drain(ctx); err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
	})
	within(t, "Stop", c.Stop)
}

func stopDuringStart(t *testing.T, c lifecycle.Component) {
	var starting sync.WaitGroup
	starting.Go(func() { _ = c.Start(t.Context()) }) // either outcome is right
	within(t, "Stop", c.Stop)
	within(t, "Start", starting.Wait)
	within(t, "Stop", c.Stop)
}

func stopDuringDrain(t *testing.T, c lifecycle.Component) {
	start(t, c)
	var draining sync.WaitGroup
	draining.Go(func() { _ = c.Drain(t.Context()) }) // either outcome is right
	within(t, "Stop", c.Stop)
	within(t, "Drain", draining.Wait)
}

func start(t *testing.T, c lifecycle.Component) {
	t.Helper()
	within(t, "Start", func() { require.NoError(t, c.Start(t.Context())) })
}

// healthy fails if the component has reported its own end.
func healthy(t *testing.T, c lifecycle.Component) {
	t.Helper()
	select {
	case err := <-c.Failed():
		if err == nil {
			err = errors.New("closed")
		}
		require.NoError(t, err, "Failed, although nothing did")
	default:
	}
}
