package eventlog

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// minRing is the number of entries that a ring keeps when the Store exceeds its memory bound: enough for a viewer to
// leave and enter live mode without a read.
const minRing = 4

// tail is the live end of one watched log, shared by its viewers.
//
// Locks are taken in this order: emitting, Viewer.turn, Store.mu, mu, Viewer.mu.
// Callbacks run under emitting and Viewer.turn only.
type tail struct {
	s   *Store
	log subject.Log
	key string

	// emitting serialises the delivery of new entries to the live viewers.
	emitting sync.Mutex
	scratch  []*Viewer // used by emit
	fresh    []*Entry  // used by emit

	opened chan opened // gets one value once the tail is ready or broken

	mu        sync.Mutex
	sub       *nats.Subscription
	ready     bool // splice.Last is the log's end in the stream
	gone      bool // dropped from the Store
	splice    entry.Splice
	ring      *entry.Ring
	tombstone *Entry // set if the log was deleted: viewers get only this entry
	viewers   map[*Viewer]struct{}
	live      []*Viewer
	groups    map[uint64]*group // viewers that wait for a batch, by position
	healing   bool
	idle      time.Time // time at which its last viewer left
	checkAt   time.Time // next comparison with the stream
	trigger   string    // reason of the next comparison
	lost      int       // announcements that had been dropped before the last comparison
}

func newTail(s *Store, log subject.Log) *tail {
	return &tail{
		s: s, log: log, key: tailKey(log),
		ring:    entry.NewRing(s.opt.Ring, s.opt.RingBytes),
		opened:  make(chan opened, 1),
		viewers: make(map[*Viewer]struct{}),
		groups:  make(map[uint64]*group),
	}
}

// begin returns the tail of a log that has none. The caller starts it. s.mu is held.
func (s *Store) begin(log subject.Log) *tail {
	t := newTail(s, log)
	s.tails[t.key] = t
	s.met.watched.Inc()
	return t
}

// emit takes entries from any source and delivers the next ones to the live viewers. It heals gaps for the given
// reason.
func (t *tail) emit(reason string, entries ...*Entry) {
	t.emitting.Lock()
	defer t.emitting.Unlock()
	t.mu.Lock()
	t.fresh = t.fresh[:0]
	for _, e := range entries {
		t.fresh = t.splice.Offer(t.fresh, e)
	}
	t.remember(t.fresh)
	t.healIfBehind(reason)
	t.scratch = append(t.scratch[:0], t.live...)
	t.mu.Unlock()
	if n := len(t.fresh); n > 0 {
		if len(t.scratch) > 0 {
			t.s.met.delivery.Observe(time.Since(t.fresh[n-1].Time).Seconds())
		}
		for _, v := range t.scratch {
			v.offer(t.fresh)
		}
	}
	clear(t.scratch)
	clear(t.fresh)
}

// remember puts entries into the ring. mu is held.
func (t *tail) remember(entries []*Entry) {
	before := t.ring.Bytes()
	for _, e := range entries {
		if e.Type.Tombstone() {
			t.bury(e)
		}
		t.ring.Push(e)
	}
	t.account(before)
}

// account reports a change of the ring's size and shrinks the ring if all rings together are too big. mu is held.
func (t *tail) account(before int) {
	total := t.s.ringBytes.Add(int64(t.ring.Bytes() - before))
	if before = t.ring.Bytes(); total > int64(t.s.opt.TotalBytes) {
		over := total - int64(t.s.opt.TotalBytes)
		for t.ring.Len() > minRing && int64(before-t.ring.Bytes()) < over {
			t.ring.Evict()
		}
		total = t.s.ringBytes.Add(int64(t.ring.Bytes() - before))
	}
	t.s.met.ringBytes.Set(float64(total))
}

// begin makes the tail ready: last is the log's last entry, nil if the log is empty.
func (t *tail) begin(last *Entry) {
	t.mu.Lock()
	if last != nil {
		before := last.Cursor()
		before.Seq--
		before.Stream--
		t.remember(t.splice.SkipTo(before))
		t.remember(t.splice.Offer(nil, last))
	} else {
		t.remember(t.splice.Release(nil))
	}
	t.ready = true
	t.healIfBehind(healGap)
	waiting := make([]*Viewer, 0, len(t.viewers))
	for v := range t.viewers {
		waiting = append(waiting, v)
	}
	t.mu.Unlock()
	for _, v := range waiting {
		t.enqueue(v)
	}
}

// healIfBehind starts a healing read if known entries are missing. mu is held.
func (t *tail) healIfBehind(reason string) {
	if !t.ready || t.healing || t.gone || !t.splice.Behind() {
		return
	}
	t.healing = true
	t.s.met.heals.WithLabelValues(reason).Inc()
	t.s.heals.Submit(t.heal)
}

// takes reports whether the tail has use for the announced entry. It only notes the position of one that comes when as
// many as may wait do: that one is read from the stream in its turn.
func (t *tail) takes(at Cursor) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at.Seq <= t.splice.Last.Seq {
		return false
	}
	if t.healing && t.splice.Full() {
		t.splice.Expect(at)
		return false
	}
	return true
}

// last returns the position of the newest released entry.
func (t *tail) last() Cursor {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.splice.Last
}

// behind returns the number of known events after the newest released one.
func (t *tail) behind() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newest() - t.splice.Last.Seq
}

// newest returns the seq of the newest known event, released or not. mu is held.
func (t *tail) newest() uint64 {
	if !t.splice.Behind() {
		return t.splice.Last.Seq
	}
	return t.splice.Want.Seq
}

// demote takes a viewer out of the live list and, unless it is full, queues it for its next batch. The viewer's turn
// is held, so that it cannot go live meanwhile.
func (t *tail) demote(v *Viewer) {
	t.mu.Lock()
	t.unlive(v)
	v.fallBack()
	t.mu.Unlock()
	t.s.met.lags.Inc()
	t.enqueue(v)
}

// unlive removes the viewer from the live list. mu is held.
func (t *tail) unlive(v *Viewer) {
	if v.index < 0 {
		return
	}
	n := len(t.live) - 1
	moved := t.live[n]
	t.live[v.index], moved.index = moved, v.index
	t.live[n] = nil
	t.live = t.live[:n]
	v.index = -1
}

// leave removes a viewer permanently.
func (t *tail) leave(v *Viewer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.viewers[v]; !ok {
		return
	}
	t.s.met.viewers.Dec()
	delete(t.viewers, v)
	t.unlive(v)
	if len(t.viewers) == 0 {
		t.idle = time.Now()
	}
}

// read reports whether the tail has viewers.
func (t *tail) read() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.viewers) > 0
}

// fail ends all viewers of the tail.
func (t *tail) fail(err error) {
	t.mu.Lock()
	viewers := make([]*Viewer, 0, len(t.viewers))
	for v := range t.viewers {
		viewers = append(viewers, v)
	}
	t.mu.Unlock()
	for _, v := range viewers {
		v.fail(err)
	}
}
