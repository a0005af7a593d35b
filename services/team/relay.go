package team

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/teamwork"
)

const (
	// waitingBytes bounds the events of members that wait for their team's log: several
	// seconds of 50 members that stream as fast as models do (1 KB/s as text, ten times
	// that as events).
	waitingBytes = 4 << 20
	// relayChunk is how many events of one member are appended before the others, and
	// commands, have their turn: 30 ms in a cluster, where an append takes half of one.
	relayChunk = 64
	// relayPause spaces the attempts to relay when something is wrong, doubled up to
	// relayPauseMax, so that the end of an election is met soon.
	relayPause    = 100 * time.Millisecond
	relayPauseMax = 5 * time.Second
	// relayLook is the interval at which a relay checks its team without a notification,
	// in case one was lost.
	relayLook = 15 * time.Second
)

// relay takes what happens in the logs of a team's members over into the team's log. One
// goroutine runs it.
type relay struct {
	s      *Service
	l      *ledger.Log[teamwork.State]
	budget budget
	feeds  map[string]*feed // by name of the member
	poke   chan struct{}
	stale  atomic.Bool // another process may have appended to the team's log

	quietSince time.Time // since when nothing has been to do; zero: something is
	revision   uint64    // of the registry's entry then
	looked     time.Time // when the log was last read to its end
}

func (s *Service) newRelay(log subject.Log) *relay {
	return &relay{
		s: s, l: s.logs.Pin(log), budget: budget{left: waitingBytes},
		feeds: map[string]*feed{}, poke: make(chan struct{}, 1),
	}
}

// wake has the relay look for something to do. It never blocks.
func (r *relay) wake() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// look is wake for when another process may have appended to the team's log.
func (r *relay) look() {
	r.stale.Store(true)
	r.wake()
}

// run relays until ctx ends or the team is at rest, which it notes.
func (r *relay) run(ctx context.Context) {
	r.s.metrics.relays.Inc()
	defer r.s.metrics.relays.Dec()
	defer r.s.logs.Unpin(r.l.Ref)
	defer r.closeAll()
	for pause := relayPause; ctx.Err() == nil; {
		rested, err := r.turn(ctx)
		switch {
		case rested:
			return
		case err == nil:
			pause = relayPause
			r.wait(ctx, min(relayLook, r.s.cfg.Rest))
		case ctx.Err() == nil:
			r.s.metrics.failed.Inc()
			r.s.deps.Logger.Warn().Err(err).Stringer("log", r.l.Ref).Msg("relay to team will be retried")
			r.looked = time.Time{}
			sleep(ctx, pause)
			pause = min(2*pause, relayPauseMax)
		}
	}
}

// turn does all open work and reports whether the team has gone to rest.
func (r *relay) turn(ctx context.Context) (rested bool, err error) {
	if r.stale.Swap(false) || time.Since(r.looked) >= relayLook {
		if err := r.l.Sync(ctx); err != nil {
			return false, err
		}
		r.looked = time.Now()
	}
	for ctx.Err() == nil {
		moved, err := r.round(ctx)
		if err != nil {
			return false, err
		}
		if err := r.s.followUp(ctx, r.l); err != nil {
			return false, err
		}
		if err := r.free(ctx); err != nil {
			return false, err
		}
		if !moved {
			return r.rest(ctx)
		}
	}
	return false, nil
}

// free gives back the place of a team that was shut down. The team ends when the log of its last member has ended, which the relay
// sees first.
func (r *relay) free(ctx context.Context) error {
	closed := false
	r.l.Peek(func(st *teamwork.State) { closed = st.Closed() })
	if !closed {
		return nil
	}
	return r.s.quota.Free(ctx, r.l.Ref.Tenant, r.l.Ref.Entity)
}

// round lets every member have its turn and reports whether any had something.
func (r *relay) round(ctx context.Context) (moved bool, err error) {
	if _, err := r.l.Update(ctx, advance); err != nil {
		return false, err
	}
	if err := r.follow(); err != nil {
		return false, err
	}
	for _, f := range r.feeds {
		n, err := r.take(ctx, f)
		if err != nil {
			return moved, err
		}
		moved = moved || n > 0
	}
	return moved, nil
}

// advance is what follows from the state alone.
func advance(st *teamwork.State) (decision.Decision, error) { return decision.Of(st.Advance()...), nil }

// follow opens and closes feeds, so that they are those of the members that have a log.
func (r *relay) follow() error {
	var list []teamwork.Source
	r.l.Peek(func(st *teamwork.State) { list = st.Follow() })
	wanted := make(map[string]bool, len(list))
	var errs []error
	for _, m := range list {
		wanted[m.Name] = true
		f := r.feeds[m.Name]
		if f == nil {
			r.feeds[m.Name] = r.newFeed(m)
			continue
		}
		if err := f.reopen(); err != nil {
			r.discard(m.Name)
			errs = append(errs, fmt.Errorf("follow %s: %w", f.log, err))
		}
	}
	for name := range r.feeds {
		if !wanted[name] {
			r.discard(name)
		}
	}
	return errors.Join(errs...)
}

// discard ends a feed with what waits in it.
func (r *relay) discard(name string) {
	f := r.feeds[name]
	f.close()
	f.drop(len(f.peek(int(^uint(0) >> 1))))
	delete(r.feeds, name)
}

func (r *relay) closeAll() {
	for name := range r.feeds {
		r.discard(name)
	}
}

// take appends the next events of a member, and returns their number. A gap before them means
// that the feed does not start where the team's log ends.
func (r *relay) take(ctx context.Context, f *feed) (int, error) {
	news := f.peek(relayChunk)
	if len(news) == 0 {
		return 0, nil
	}
	_, err := r.l.Update(ctx, func(st *teamwork.State) (decision.Decision, error) {
		facts, err := st.Relay(f.name, news)
		return decision.Of(facts...), err
	})
	switch {
	case errors.Is(err, teamwork.ErrGap):
		r.discard(f.name)
		return 0, err
	case err != nil:
		return 0, err
	}
	r.s.metrics.relayed.Add(float64(len(news)))
	r.s.metrics.lag.Observe(time.Since(news[0].Event.Time).Seconds())
	f.drop(len(news))
	return len(news), nil
}

// rest ends the relaying of a team that has had nothing to do for a while. A command for
// the team notes it as active first, so that the entry is another one then.
func (r *relay) rest(ctx context.Context) (bool, error) {
	revision, nested := r.s.registry.state(r.l.Ref)
	if nested || !r.quiet() {
		r.quietSince = time.Time{}
		return false, nil
	}
	now := time.Now()
	if r.quietSince.IsZero() || r.revision != revision {
		r.quietSince, r.revision = now, revision
	}
	if now.Sub(r.quietSince) < r.s.cfg.Rest || revision == 0 {
		return false, nil
	}
	if still, err := r.still(ctx); err != nil || !still {
		r.quietSince = time.Time{}
		return false, err
	}
	return r.s.registry.rest(ctx, r.l.Ref, revision)
}

// quiet reports whether the team is idle, as far as this process knows.
func (r *relay) quiet() bool {
	settled := false
	r.l.Peek(func(st *teamwork.State) { settled = st.Settled() })
	if !settled {
		return false
	}
	for _, f := range r.feeds {
		if !f.quiet() {
			return false
		}
	}
	return true
}

// still is quiet, checked in the logs themselves.
func (r *relay) still(ctx context.Context) (bool, error) {
	var list []teamwork.Source
	settled := false
	err := r.l.Read(ctx, func(st *teamwork.State) error {
		settled, list = st.Settled(), st.Follow()
		return nil
	})
	if err != nil || !settled {
		return false, err
	}
	for _, m := range list {
		f := r.feeds[m.Name]
		if f == nil {
			return false, nil
		}
		end, err := r.s.deps.Log.Last(ctx, f.log)
		if err != nil || end.Seq != m.Seq {
			return false, err
		}
	}
	return true, nil
}

// wait returns when there may be something to do, or after d.
func (r *relay) wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-r.poke:
	case <-t.C:
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
