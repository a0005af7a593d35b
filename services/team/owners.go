package team

import (
	"context"
	"errors"
	"sync"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/teamwork"
)

var errStopped = errors.New("the relays have been stopped")

// owners runs the relays of the teams that are active and this replica's: those whose
// commands come here first.
type owners struct {
	s    *Service
	poke chan struct{}
	life context.Context //nolint:containedctx // of the relays, ended by stop
	end  context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex
	ended  bool
	relays map[subject.Log]*running
}

// running is a relay with the channel of its end.
type running struct {
	*relay
	revision uint64 // of the registry's entry when it was last woken
	end      context.CancelFunc
	done     chan struct{}
}

func newOwners(s *Service) *owners {
	w := &owners{s: s, poke: make(chan struct{}, 1), relays: map[subject.Log]*running{}}
	w.life, w.end = context.WithCancel(context.Background())
	return w
}

// wake has the teams divided anew. It never blocks.
func (w *owners) wake() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// start begins to relay. It returns at once.
func (w *owners) start(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return errStopped
	}
	w.work.Go(w.follow)
	return nil
}

// follow divides the teams whenever teams or replicas come or go.
func (w *owners) follow() {
	defer w.s.deps.Directory.Watch(w.wake)()
	for {
		w.divide()
		select {
		case <-w.life.Done():
			w.divide()
			return
		case <-w.poke:
		}
	}
}

// stop ends all relays and returns when they have ended. It may be called more than once,
// also if start was not, and while it is running.
func (w *owners) stop() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.end()
	w.work.Wait()
}

// divide starts and ends relays, so that those run that are to.
func (w *owners) divide() {
	active := w.s.registry.on()
	members := w.s.pulse.living(w.s.deps.Directory.Members(directory.WhatService, cmd.Team))
	var ended []*running
	w.mu.Lock()
	for log, r := range w.relays {
		p, on := active[log]
		switch {
		case w.life.Err() != nil || !on || !w.ours(log, members):
			r.end()
			ended = append(ended, r)
			delete(w.relays, log)
		case r.over():
			delete(w.relays, log)
		case p.revision != r.revision: // another process may have appended
			r.revision = p.revision
			r.look()
		}
	}
	for log, p := range active {
		if w.relays[log] == nil && w.life.Err() == nil && w.ours(log, members) {
			w.relays[log] = w.run(log, p.revision)
		}
	}
	w.mu.Unlock()
	for _, r := range ended {
		<-r.done
	}
}

func (w *owners) ours(log subject.Log, members []directory.Member) bool {
	return command.Owns(w.s.deps.Conn.Partitions(), w.s.deps.Instance, members, subject.Command{Service: cmd.Team, Tenant: log.Tenant, Key: log.Entity})
}

// run starts a relay. mu is held.
func (w *owners) run(log subject.Log, revision uint64) *running {
	ctx, end := context.WithCancel(w.life)
	r := &running{relay: w.s.newRelay(log), revision: revision, end: end, done: make(chan struct{})}
	w.work.Go(func() {
		defer w.wake() // it may have to begin again at once
		defer close(r.done)
		defer end()
		r.relay.run(ctx)
	})
	return r
}

// over reports whether the relay has ended by itself.
func (r *running) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// tell wakes the team's relay after an append, on this replica or another one.
func (w *owners) tell(ctx context.Context, log subject.Log) error {
	w.mu.Lock()
	r := w.relays[log]
	w.mu.Unlock()
	if r != nil && !r.over() {
		r.wake()
		return nil
	}
	settled := true
	w.s.logs.Get(log).Peek(func(st *teamwork.State) { settled = st.Settled() })
	if settled {
		return nil
	}
	return w.s.registry.activate(ctx, log)
}
