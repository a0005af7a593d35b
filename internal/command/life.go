package command

import (
	"context"
	"errors"
	"sync"

	"github.com/waggle-dev/waggle/internal/reuse"
)

var errOver = errors.New("it has been stopped")

// life holds the start, drain and stop that the components of this package share, as lifecycle.Component requires.
type life struct {
	kill context.Context // ends at Stop: cancels handlers
	stop context.CancelFunc
	quit context.Context // ends at Drain or Stop: ends the intake
	end  context.CancelFunc
	fail chan error

	mu     sync.Mutex
	wg     sync.WaitGroup
	intake sync.WaitGroup    // goroutines that bring new work
	short  *reuse.Goroutines // for jobs that wg counts
}

func newLife() *life {
	l := &life{fail: make(chan error, 1)}
	l.kill, l.stop = context.WithCancel(context.Background())
	l.quit, l.end = context.WithCancel(l.kill)
	l.short = reuse.New(l.quit)
	return l
}

// starting returns ctx, which also ends when the component stops.
func (l *life) starting(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(l.quit, cancel)
	return ctx, func() { unhook(); cancel() }
}

// run runs f in a goroutine that Drain and Stop wait for, or returns an error after Drain or Stop. An error of f
// fails the component.
func (l *life) run(f func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.quit.Err() != nil {
		return errOver
	}
	l.begin(f)
	return nil
}

// take is run for a goroutine that brings new work. It is counted before a Stop can wait for it, or not at all.
func (l *life) take(f func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.quit.Err() != nil {
		return errOver
	}
	l.intake.Add(1)
	l.begin(func() error {
		defer l.intake.Done()
		return f()
	})
	return nil
}

// begin runs f in a goroutine that Drain and Stop wait for. mu is held.
func (l *life) begin(f func() error) {
	l.wg.Go(func() {
		if err := f(); err != nil && l.quit.Err() == nil {
			select {
			case l.fail <- err:
			default:
			}
		}
	})
}

// leave ends the intake and prevents new goroutines.
func (l *life) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// Failed implements lifecycle.Component.
func (l *life) Failed() <-chan error { return l.fail }

// Drain ends the intake and returns when the work in progress has ended, or ctx's error.
func (l *life) Drain(ctx context.Context) error {
	l.leave()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.wg.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop cancels the handlers' contexts and returns unfinished commands to the queue, so that another replica gets them
// at once. It returns when all handlers have returned.
func (l *life) Stop() {
	l.leave()
	l.intake.Wait() // otherwise a returned message might come to this replica again
	l.stop()
	l.wg.Wait()
}
