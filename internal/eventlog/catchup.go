package eventlog

import (
	"errors"
	"fmt"

	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// group is the viewers of a tail that wait for a batch at the same position. They share one read and one merge:
// thousands of simultaneous recoveries of one log cost as much as one.
type group struct {
	t       *tail
	at      Cursor
	viewers []*Viewer
}

// source is the origin of a group's next batch.
type source uint8

const (
	fromNowhere source = iota // at the end: go live
	fromRing
	fromStream
	beyondEnd
)

// enqueue puts a viewer that is catching up into the group of its position.
func (t *tail) enqueue(v *Viewer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ready || t.gone {
		return // not ready: begin enqueues all viewers
	}
	v.mu.Lock()
	at, ok := v.at, v.state == stateCatching && !v.queued
	v.queued = v.queued || ok
	v.mu.Unlock()
	if !ok {
		return
	}
	if g := t.groups[at.Seq]; g != nil {
		g.viewers = append(g.viewers, v)
		if g.at.Stream == 0 {
			g.at.Stream = at.Stream
		}
		return
	}
	g := &group{t: t, at: at, viewers: []*Viewer{v}}
	t.groups[at.Seq] = g
	t.submit(g)
}

// submit queues the group for the readers of its stream or, if it needs no read, for those of memory only. mu is
// held.
func (t *tail) submit(g *group) {
	if from, _ := t.next(g.at); from == fromNowhere || from == fromRing {
		t.s.memory.Submit(g.fromMemory)
		return
	}
	t.s.pool(t.log).Submit(g.fromStream)
}

// next returns the source of the entries after the position, and the entries themselves from the ring. mu is held.
func (t *tail) next(at Cursor) (source, []*Entry) {
	switch {
	case at.Seq > t.splice.Last.Seq:
		return beyondEnd, nil
	case at.Seq == t.splice.Last.Seq:
		return fromNowhere, nil
	case t.tombstone != nil:
		return fromRing, []*Entry{t.tombstone}
	}
	if entries, ok := t.ring.After(at.Seq, pageCount); ok && len(entries) > 0 {
		return fromRing, entries
	}
	return fromStream, nil
}

// take closes the group: later viewers of the position start a new one.
func (g *group) take() (source, []*Entry) {
	g.t.mu.Lock()
	defer g.t.mu.Unlock()
	delete(g.t.groups, g.at.Seq)
	for _, v := range g.viewers {
		v.mu.Lock()
		v.queued = false
		v.mu.Unlock()
	}
	return g.t.next(g.at)
}

// fromMemory serves the group without a read.
func (g *group) fromMemory() {
	switch from, entries := g.take(); from {
	case fromNowhere:
		g.goLive()
	case fromRing:
		g.t.s.met.reads.WithLabelValues("ring").Inc()
		g.hand(entries)
	default: // the ring has moved on
		g.again()
	}
}

// fromStream serves the group with a read of the stream.
func (g *group) fromStream() {
	from, entries := g.take()
	switch from {
	case fromNowhere:
		g.goLive()
	case fromRing:
		g.hand(entries)
	case fromStream:
		g.read()
	case beyondEnd:
		g.reachBeyond()
	}
}

// read delivers the next page of the stream to the group.
func (g *group) read() {
	t := g.t
	most := t.absent(g.at)
	entries, err := patiently(t.s, func() ([]*Entry, error) { return t.s.follow(t.s.ctx, t.log, g.at, most) })
	if err == nil && len(entries) == 0 {
		err = fmt.Errorf("%w: nothing follows %s of %s", ErrBeyondEnd, g.at, t.log)
	}
	if err != nil {
		g.fail(err)
		return
	}
	t.s.met.reads.WithLabelValues("stream").Inc()
	last := t.last().Seq
	for i, e := range entries {
		if e.Sequence > last {
			t.emit(healGap, entries[i:]...) // the stream is ahead of the announcements
			break
		}
	}
	if e := t.grave(); e != nil { // the log was deleted during the read
		g.hand([]*Entry{e})
		return
	}
	if first := entries[0]; first.Sequence != g.at.Seq+1 {
		for _, v := range g.viewers {
			v.skip(first.Sequence, first.Stream-1)
		}
	}
	t.recall(entries)
	g.hand(entries)
}

// absent returns the number of entries to read after the position: those that the ring lacks, as far as one read goes.
func (t *tail) absent(at Cursor) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.ring.First()
	if first <= at.Seq+1 {
		return readCount
	}
	n := first - at.Seq - 1
	if at.Stream == 0 {
		n += min(at.Seq, pageCount) // it begins up to a page before the position
	}
	return int(min(n, readCount))
}

// recall adds read entries in front of the ring if they fit.
func (t *tail) recall(entries []*Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tombstone != nil {
		return
	}
	before := t.ring.Bytes()
	t.ring.Extend(entries, t.splice.Last.Seq+1)
	t.account(before)
}

// reachBeyond serves viewers whose position lies beyond the end of the tail: the announcements are late, or the
// position is wrong.
func (g *group) reachBeyond() {
	t := g.t
	end, err := patiently(t.s, func() (Cursor, error) { return t.s.end(t.s.ctx, t.log) })
	if err == nil && end.Seq < g.at.Seq {
		err = fmt.Errorf("%w: %s ends at %d, not %d", ErrBeyondEnd, t.log, end.Seq, g.at.Seq)
	}
	for err == nil {
		at := t.last()
		if at.Seq >= g.at.Seq {
			break
		}
		var entries []*Entry
		entries, err = patiently(t.s, func() ([]*Entry, error) { return t.s.follow(t.s.ctx, t.log, at, readCount) })
		if err == nil && len(entries) == 0 {
			err = fmt.Errorf("%w: nothing follows %s of %s", ErrBeyondEnd, at, t.log)
		}
		if err == nil {
			t.advance(at, entries)
		}
	}
	if err != nil {
		g.fail(err)
		return
	}
	g.again()
}

// hand delivers the entries to the viewers of the group, merged for those that were full, and queues each viewer for
// its next batch.
func (g *group) hand(entries []*Entry) {
	var merged []*Entry
	for _, v := range g.viewers {
		batch := entries
		if v.wantsMerged() {
			if merged == nil {
				merged = entry.Merge(entries)
			}
			batch = merged
		}
		v.feed(batch)
	}
	g.again()
}

// again queues the viewers that have not caught up yet.
func (g *group) again() {
	for _, v := range g.viewers {
		g.t.enqueue(v)
	}
}

func (g *group) goLive() {
	for _, v := range g.viewers {
		if !g.t.join(v) {
			g.t.enqueue(v)
		}
	}
}

// fail ends the viewers of the group. When the Store closes, Close ends them.
func (g *group) fail(err error) {
	if errors.Is(err, ErrClosed) {
		return
	}
	for _, v := range g.viewers {
		v.fail(err)
	}
}

// join makes a viewer live if it has reached the end of the tail. It returns false if the viewer must catch up first.
func (t *tail) join(v *Viewer) bool {
	v.turn.Lock()
	defer v.turn.Unlock()
	t.mu.Lock()
	v.mu.Lock()
	over := v.state != stateCatching
	end := v.at.Seq == t.splice.Last.Seq && !t.gone
	first := !v.caught
	if !over && end {
		v.state, v.merging, v.caught = stateLive, false, true
		v.at = t.splice.Last // with the right stream sequence
		v.index = len(t.live)
		t.live = append(t.live, v)
	}
	seq := v.at.Seq
	v.mu.Unlock()
	t.mu.Unlock()
	if over {
		return true
	}
	if end && first {
		v.sink.CaughtUp(seq)
	}
	return end
}

// feed delivers a batch to a viewer that is catching up.
func (v *Viewer) feed(entries []*Entry) {
	v.turn.Lock()
	defer v.turn.Unlock()
	v.mu.Lock()
	for len(entries) > 0 && entries[0].Sequence <= v.at.Seq {
		entries = entries[1:]
	}
	ok := v.state == stateCatching && len(entries) > 0 && (entries[0].From == v.at.Seq+1 || entries[0].Type.Tombstone())
	if ok {
		v.calling, v.again = true, false
	}
	v.mu.Unlock()
	if ok {
		v.hand(entries)
	}
}

func (v *Viewer) wantsMerged() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.merging
}

// patiently repeats a read while the connection is down: viewers do not cause that, and failing them would not help.
func patiently[T any](s *Store, read func() (T, error)) (T, error) {
	for {
		v, err := read()
		f, ok := errors.AsType[*fault.Fault](err)
		if !ok || f.Code != fault.BusUnavailable || s.conn.Up() || s.ctx.Err() != nil {
			return v, err
		}
	}
}
