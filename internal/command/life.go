package command

import (
	"context"
	"errors"
	"sync"
)

var errOver = errors.New("it has been stopped")

// life is what the components of this package have in common: a start, a drain and
// a stop as lifecycle.Component asks for.
type life struct {
	kill context.Context // ends at Stop: handlers see it
	stop context.CancelFunc
	quit context.Context // ends at Drain or Stop: nothing new is taken
	end  context.CancelFunc
	fail chan error

	mu     sync.Mutex
	wg     sync.WaitGroup
	intake sync.WaitGroup // what brings new work
}

func newLife() *life {
	l := &life{fail: make(chan error, 1)}
	l.kill, l.stop = context.WithCancel(context.Background())
	l.quit, l.end = context.WithCancel(l.kill)
	return l
}

// starting returns ctx, ending early when the component is stopped.
func (l *life) starting(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(l.quit, cancel)
	return ctx, func() { unhook(); cancel() }
}

// run runs f in a goroutine that Drain and Stop wait for, unless it is too late. An
// error of f is the death of the component.
func (l *life) run(f func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.quit.Err() != nil {
		return errOver
	}
	l.wg.Go(func() {
		if err := f(); err != nil && l.quit.Err() == nil {
			select {
			case l.fail <- err:
			default:
			}
		}
	})
	return nil
}

// leave makes sure that nothing is taken or started from now on.
func (l *life) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// Failed implements lifecycle.Component.
func (l *life) Failed() <-chan error { return l.fail }

// Drain takes no new work and returns when what is on is finished, or ctx's error.
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

// Stop ends at once: handlers see their context end, and what they leave undone is
// handed back, so that another replica has it without waiting. Stop returns when all
// handlers have returned.
func (l *life) Stop() {
	l.leave()
	l.intake.Wait() // or what is handed back might come to us again
	l.stop()
	l.wg.Wait()
}
