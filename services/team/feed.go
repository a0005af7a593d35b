package team

import (
	"sync"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/teamwork"
)

// budget bounds the bytes of members' events that wait for the team's log, over all
// members of a team. Every member may have one event waiting beyond it, so that none is
// starved by the others: that is 64 MB more at the very worst (256 events of 256 KB).
type budget struct {
	mu   sync.Mutex
	left int
}

func (b *budget) take(n int, force bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < n && !force {
		return false
	}
	b.left -= n
	return true
}

func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
}

// feed is one member's log as its team's relay follows it. It is a sink that never
// takes merged events: a viewer that was full would get them, so that it is replaced by a
// new one instead of being resumed.
type feed struct {
	name   string
	log    subject.Log
	store  *eventlog.Store
	budget *budget
	wake   func()
	met    *metrics

	view *eventlog.Viewer // nil: none is open; of the relay's goroutine

	mu      sync.Mutex
	at      eventlog.Cursor // of the last event that was taken
	waiting []teamwork.Incoming
	bytes   []int // of each
	shut    bool  // an event was refused, or the viewer failed: a new one is needed
	expired bool  // older events than the next one have expired
	caught  bool  // the end of the log was reached
	err     error // why the viewer failed
}

// newFeed follows the member's log from where the team's log ends.
func (r *relay) newFeed(m teamwork.Source) *feed {
	f := &feed{
		name: m.Name, store: r.s.deps.Log, budget: &r.budget, wake: r.wake, met: r.s.metrics,
		log: subject.Log{Tenant: r.l.Ref.Tenant, Kind: logKind(m.Kind), Entity: m.ID}, at: eventlog.Cursor{Seq: m.Seq},
	}
	f.open()
	return f
}

// logKind returns the kind of the log of a member of the kind.
func logKind(member string) id.Kind {
	if member == event.MemberTeam {
		return id.KindTeam
	}
	return id.KindMember
}

// open begins to follow after the last event that was taken.
func (f *feed) open() {
	f.mu.Lock()
	f.shut, f.err = false, nil
	at := f.at
	f.mu.Unlock()
	f.view = f.store.Watch(f.log, at, f)
}

// close closes the viewer. Waiting events stay.
func (f *feed) close() {
	if f.view != nil {
		f.view.Close()
		f.view = nil
	}
}

// reopen opens a new viewer if the last one has ended and the queue has room again. It returns why
// the last one failed.
func (f *feed) reopen() error {
	f.mu.Lock()
	shut, idle, err := f.shut, len(f.waiting) == 0, f.err
	f.err = nil
	f.mu.Unlock()
	if !shut || !idle && err == nil {
		return nil
	}
	f.close()
	if err == nil {
		f.open()
	}
	return err
}

// Deliver implements eventlog.Sink.
func (f *feed) Deliver(batch []*eventlog.Entry) int {
	defer f.wake()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut {
		return 0
	}
	for i, e := range batch {
		merged := e.From < e.Sequence
		if merged || !f.budget.take(len(e.Raw), len(f.waiting) == 0) {
			f.shut = true
			f.met.full.Inc()
			return i
		}
		f.waiting = append(f.waiting, teamwork.Incoming{Event: e.Event, Raw: e.Raw, Expired: f.expired})
		f.bytes = append(f.bytes, len(e.Raw))
		f.met.waiting.Inc()
		f.met.bytes.Add(float64(len(e.Raw)))
		f.at, f.expired = e.Cursor(), false
	}
	return len(batch)
}

// Truncated implements eventlog.Sink.
func (f *feed) Truncated(first uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expired = true
	f.at = eventlog.Cursor{Seq: first - 1}
}

// Failed implements eventlog.Sink.
func (f *feed) Failed(err error) {
	defer f.wake()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shut, f.err = true, err
}

// CaughtUp implements eventlog.Sink.
func (f *feed) CaughtUp(uint64) {
	defer f.wake()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.caught = true
}

// peek returns the events that wait, n at most. They stay until drop.
func (f *feed) peek(n int) []teamwork.Incoming {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting[:min(n, len(f.waiting)):min(n, len(f.waiting))]
}

// drop takes the first n events off.
func (f *feed) drop(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	size := 0
	for _, b := range f.bytes[:n] {
		size += b
	}
	clear(f.waiting[:n])
	f.waiting, f.bytes = f.waiting[n:], f.bytes[n:]
	if len(f.waiting) == 0 {
		f.waiting, f.bytes = nil, nil
	}
	f.budget.give(size)
	f.met.waiting.Sub(float64(n))
	f.met.bytes.Sub(float64(size))
}

// quiet reports whether the end of the log was reached and nothing waits.
func (f *feed) quiet() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.caught && !f.shut && len(f.waiting) == 0
}
