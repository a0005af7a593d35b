package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
)

// stopGrace bounds Run's wait for one component's Stop. Stop does not work, so it takes milliseconds; a component
// that hangs in it must not keep the process alive until an orchestrator kills it together with the healthy ones.
const stopGrace = 5 * time.Second

// ErrStoppedNow is returned by Run, wrapped, when a second signal cut the drain short.
var ErrStoppedNow = errors.New("stopped by a second signal before everything was drained")

// Group runs components together: they start in order, and end in reverse order. A Group runs once.
type Group struct {
	log    zerolog.Logger
	budget func() time.Duration
	parts  []Component
	grace  time.Duration
	listen func(chan<- os.Signal) (cancel func())
}

// NewGroup returns an empty group. budget bounds the drain of all components together; make it a few seconds less
// than the time the orchestrator grants.
func NewGroup(log zerolog.Logger, budget time.Duration) *Group {
	return &Group{log: log, budget: func() time.Duration { return budget }, grace: stopGrace, listen: listen}
}

// Shorten lets budget say, when the end begins, how long the drain may take. It must not be called after Run.
func (g *Group) Shorten(budget func() time.Duration) { g.budget = budget }

func listen(ch chan<- os.Signal) func() {
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	return func() { signal.Stop(ch) }
}

// Add appends components in the order of their start: each may use those before it. It must not be called after Run.
func (g *Group) Add(c ...Component) { g.parts = append(g.parts, c...) }

// Run starts the components in order and returns when all have ended. The end of ctx, SIGINT or SIGTERM, a failed
// start, or a component that ends by itself triggers the end. Then, in reverse order, Run drains and stops each
// started component before the next one begins to drain. When the budget is used up, or at a second signal, it stops
// the rest without a drain. (The end of ctx does not count as a signal, so that ctx may come from
// signal.NotifyContext.)
//
// Run returns the first error and logs later ones. After a requested end and a complete drain it returns nil.
func (g *Group) Run(ctx context.Context) error {
	asked, ask := context.WithCancelCause(ctx)                            // ends when the drain begins
	hurried, hurry := context.WithCancelCause(context.WithoutCancel(ctx)) // ends when the stop begins
	r := &run{Group: g, ask: ask, over: make(chan struct{})}
	signals := make(chan os.Signal, 2)
	ignore := g.listen(signals)
	r.watchers.Go(func() { r.watchSignals(signals, hurry) })

	if r.startAll(asked, hurried) {
		g.log.Debug().Int("components", len(r.up)).Msg("all components running")
		<-asked.Done()
	}
	if died, ok := errors.AsType[*failure](context.Cause(asked)); ok {
		r.fail(died)
	}
	r.endAll(hurried)

	ignore()
	close(r.over)
	r.watchers.Wait()
	for _, release := range r.release {
		release()
	}
	ask(nil)
	hurry(nil)
	return r.first
}

// run is the state of one Run. Its fields belong to Run's goroutine.
type run struct {
	*Group
	ask      context.CancelCauseFunc
	over     chan struct{} // closed to end the watchers
	watchers sync.WaitGroup
	up       []Component
	release  []context.CancelFunc
	first    error
}

func (r *run) watchSignals(signals <-chan os.Signal, hurry context.CancelCauseFunc) {
	for n := 0; ; n++ {
		select {
		case s := <-signals:
			r.log.Info().Stringer("signal", s).Msg("signal received")
			r.ask(nil)
			if n > 0 {
				hurry(ErrStoppedNow)
			}
		case <-r.over:
			return
		}
	}
}

// startAll starts the components until one fails or an end is requested.
func (r *run) startAll(asked, hurried context.Context) bool {
	for _, c := range r.parts {
		if asked.Err() != nil {
			return false
		}
		began := time.Now()
		if err := r.start(asked, hurried, c); err != nil {
			if asked.Err() == nil || !errors.Is(err, context.Canceled) {
				r.fail(fmt.Errorf("start %s: %w", c.Name(), err))
			}
			r.stop(c)
			return false
		}
		r.up = append(r.up, c)
		r.watchers.Go(func() { r.watch(c) })
		r.log.Debug().Str("component", c.Name()).Dur("took_ms", time.Since(began)).Msg("component started")
	}
	return true
}

// start starts c with a context that ends if an end is requested before c runs, but not afterwards: running
// components are drained.
func (r *run) start(asked, hurried context.Context, c Component) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(asked))
	r.release = append(r.release, cancel)
	defer context.AfterFunc(asked, cancel)()
	// Covers a Start that ignores its context.
	defer context.AfterFunc(hurried, c.Stop)()
	return c.Start(ctx)
}

// watch requests the end when c ends by itself.
func (r *run) watch(c Component) {
	select {
	case err := <-c.Failed():
		if err == nil {
			err = errors.New("exited unexpectedly")
		}
		r.ask(&failure{c.Name(), err})
	case <-r.over:
	}
}

// failure is the cause of an end that a component triggered.
type failure struct {
	name string
	err  error
}

func (f *failure) Error() string { return f.name + " failed: " + f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// endAll drains and stops the running components, last started first, within the budget.
func (r *run) endAll(hurried context.Context) {
	budget := r.budget()
	ctx, cancel := context.WithTimeoutCause(hurried, budget, fmt.Errorf("the drain budget of %s is used up", budget))
	defer cancel()
	for _, c := range slices.Backward(r.up) {
		began := time.Now()
		drained := r.drain(ctx, c)
		r.stop(c)
		r.log.Info().Str("component", c.Name()).Bool("drained", drained).Dur("took_ms", time.Since(began)).Msg("component stopped")
	}
}

// drain reports whether c has finished its work. It waits no longer than ctx, even if c does.
func (r *run) drain(ctx context.Context, c Component) bool {
	err := context.Cause(ctx)
	if err == nil {
		done := make(chan error, 1)
		go func() { done <- c.Drain(ctx) }()
		select {
		case err = <-done:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		r.fail(fmt.Errorf("drain %s: %w", c.Name(), err))
	}
	return err == nil
}

// stop ends c, or gives up after the grace.
func (r *run) stop(c Component) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Stop()
	}()
	grace := time.NewTimer(r.grace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
		r.fail(fmt.Errorf("stop %s: still running after %s, abandoned", c.Name(), r.grace))
	}
}

// fail keeps the first error and logs all of them.
func (r *run) fail(err error) {
	if r.first == nil {
		r.first = err
	}
	r.log.Error().Err(err).Msg("shutting down after error")
}
