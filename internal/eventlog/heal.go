package eventlog

import (
	"errors"
	"fmt"
	"time"
)

// settle is the delay of the second check of a log after a loss of announcements: by then interest in its subject has
// reached all servers of a cluster, and a follower that answered the first check has caught up.
const settle = 2 * time.Second

// opened is the end of a log as its tail found it.
type opened struct {
	last  *Entry // nil: the log is empty
	exact bool   // the leader has answered
}

// start subscribes to the log's announcements and finds the log's end. It subscribes first, so that the tail misses
// nothing between the two.
func (t *tail) start() {
	end, err := patiently(t.s, func() (end opened, err error) {
		err = t.s.retry(t.s.ctx, func() (err error) {
			end, err = t.open()
			return err
		})
		return end, err
	})
	if err != nil {
		t.broken(err)
		t.opened <- opened{}
		return
	}
	t.begin(end.last)
	t.opened <- end
	if t.s.nc.ConnectedClusterName() == "" { // a single server knows the interest by now, and has no follower
		t.checkSoon(checkPeriod, t.s.period())
		return
	}
	t.checkSoon(checkSettle, settle)
}

// open subscribes and finds the log's end.
func (t *tail) open() (end opened, err error) {
	if err := t.subscribe(); err != nil {
		return end, err
	}
	if err := t.s.flush(); err != nil {
		return end, err
	}
	end.last, err = t.s.leaderLast(t.s.ctx, t.log)
	end.exact = err == nil || errors.Is(err, errNone)
	if !end.exact && !permanent(err) {
		// The stream has no leader at the moment. Reads continue without one: announcements, or the check after an
		// election, bring the entries that the replica lacks.
		end.last, err = t.s.anyLast(t.s.ctx, t.log)
	}
	if errors.Is(err, errNone) {
		end.last, err = nil, nil
	}
	return end, err
}

// heal reads until the tail knows of no missing entries.
func (t *tail) heal() {
	for {
		t.mu.Lock()
		at, behind, missing := t.splice.Last, t.splice.Behind(), min(t.splice.Missing(), pageCount)
		if !behind || t.gone {
			t.healing = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		entries, err := patiently(t.s, func() ([]*Entry, error) { return t.s.follow(t.s.ctx, t.log, at, missing) })
		switch {
		case err != nil:
			t.stopHealing()
			t.broken(err)
			return
		case len(entries) == 0:
			t.s.log.Warn().Stringer("log", t.log).Stringer("at", at).Msg("announcement ignored: event not in log")
			t.mu.Lock()
			t.splice.Forget()
			t.mu.Unlock()
			t.stopHealing()
			t.rewound()
			return
		}
		t.advance(at, entries)
	}
}

func (t *tail) stopHealing() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.healing = false
}

// advance takes entries that the stream has after the position.
func (t *tail) advance(at Cursor, entries []*Entry) {
	if first := entries[0]; first.Sequence > at.Seq+1 {
		t.skip(Cursor{Seq: first.Sequence - 1, Stream: first.Stream - 1})
	}
	t.emit(healGap, entries...)
}

// skip gives up entries that expired before the tail saw them. The live viewers notice when they read.
func (t *tail) skip(at Cursor) {
	t.emitting.Lock()
	defer t.emitting.Unlock()
	t.mu.Lock()
	t.remember(t.splice.SkipTo(at))
	live := append([]*Viewer(nil), t.live...)
	for _, v := range live {
		t.unlive(v)
		v.fallBack()
	}
	t.mu.Unlock()
	for _, v := range live {
		t.enqueue(v)
	}
}

// broken ends the tail: its log cannot be read.
func (t *tail) broken(err error) {
	if errors.Is(err, ErrClosed) {
		return
	}
	t.s.log.Error().Err(err).Stringer("log", t.log).Msg("failed to read log")
	t.s.drop(t) // first, so that no viewer joins a tail that is ending
	t.fail(err)
}

// rewound ends the tail if the leader's log ends before the tail's position: acknowledged events were lost with the
// stream. It asks twice, because a server that has just lost its leadership may not know it yet. A log without events and
// without readers was removed, as after the move of its tenant to another cell.
func (t *tail) rewound() {
	var end Cursor
	for range 2 {
		reached := t.last()
		var err error
		end, err = patiently(t.s, func() (Cursor, error) { return t.s.end(t.s.ctx, t.log) })
		if err != nil {
			t.broken(err)
			return
		}
		if end.Seq >= reached.Seq {
			t.mu.Lock()
			t.splice.Expect(end)
			t.healIfBehind(healCheck)
			t.mu.Unlock()
			return
		}
		if wait(t.s.ctx, settle) != nil {
			return
		}
	}
	t.s.drop(t) // first, so that no viewer joins
	if end.Seq == 0 && !t.read() {
		t.s.log.Info().Stringer("log", t.log).Msg("removed log forgotten")
		return
	}
	t.broken(fmt.Errorf("%w: %s has lost acknowledged events", ErrBeyondEnd, t.log))
}

// fallBack makes a live viewer read again. tail.mu is held.
func (v *Viewer) fallBack() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state == stateLive {
		v.state = stateCatching
	}
}
