package audit

import (
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// gatherFor is the time whose refusals become one record.
	gatherFor = time.Second
	// maxGathered bounds the records of one second. Refusals of further clients share one record for each reason.
	maxGathered = 256
)

// Gatherer writes one record for all refusals of a second that have the same action, reason, principal and address: strangers
// cause refusals as fast as they like, and must push no other record out of the queue of the Writer. While that queue is a
// quarter full, it continues counting. It is safe for concurrent use; a nil *Gatherer writes nothing.
type Gatherer struct {
	w *Writer

	mu     sync.Mutex
	held   map[likeness]*refusals
	timer  *time.Timer // nil = none runs
	closed bool
}

// likeness is what refusals have in common that share a record.
type likeness struct {
	action                id.Name
	tenant                id.Tenant
	code, principal, from string
}

// refusals is a record that is not written yet.
type refusals struct {
	first audit.Record
	count int64
}

// NewGatherer returns a gatherer for the records of w, which may be nil. Close it before w.
func NewGatherer(w *Writer) *Gatherer {
	if w == nil {
		return nil
	}
	return &Gatherer{w: w, held: map[likeness]*refusals{}}
}

// Record counts a refusal. The record has the other fields of the first one, and in Count their number.
func (g *Gatherer) Record(action id.Name, t id.Tenant, r audit.Record) {
	if g == nil {
		return
	}
	k := likeness{action, t, r.Code, r.Principal, r.Remote}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		g.w.Record(action, t, r)
		return
	}
	held, ok := g.held[k]
	if !ok && len(g.held) >= maxGathered {
		k = likeness{action: action, code: r.Code}
		r = audit.Record{Outcome: r.Outcome, Code: r.Code}
		held, ok = g.held[k]
	}
	if !ok {
		held = &refusals{first: r}
		g.held[k] = held
	}
	held.count++
	if g.timer == nil {
		g.timer = time.AfterFunc(gatherFor, g.tick)
	}
}

// tick writes what was gathered, or waits for room in the queue.
func (g *Gatherer) tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer = nil
	if g.closed {
		return
	}
	g.write(g.crowded)
	if len(g.held) > 0 {
		g.timer = time.AfterFunc(gatherFor, g.tick)
	}
}

// crowded reports whether the queue has little room: the rest of it is for other records.
func (g *Gatherer) crowded() bool { return len(g.w.queue) > cap(g.w.queue)/4 }

// write writes what was gathered, until stop returns true.
func (g *Gatherer) write(stop func() bool) {
	for k, held := range g.held {
		if stop() {
			return
		}
		held.first.Count = held.count
		g.w.Record(k.action, k.tenant, held.first)
		delete(g.held, k)
	}
}

// Close writes the rest. Records that come later are written one by one.
func (g *Gatherer) Close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	g.closed = true
	g.write(func() bool { return false })
}
