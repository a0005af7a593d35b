package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/teamwork"
)

// cachedOffices bounds the folded teams in memory, besides those that are relayed: a
// team of five with a board takes some 50 KB.
const cachedOffices = 512

// office is where everything that this process does about one team comes together: the
// folded state of its log with the writer that keeps it up to date. It is safe for
// concurrent use.
type office struct {
	log    subject.Log
	source string
	now    func() time.Time
	store  *eventlog.Store
	starts *headStarts

	mu      sync.Mutex
	writer  *eventlog.Writer
	state   teamwork.State
	broken  error                // the log holds an event that cannot be folded
	begun   bool                 // it has been looked for a snapshot
	start   *headStart           // the snapshot that is to be confirmed by the event that it ends with
	wrong   bool                 // it was not
	last    string               // id of the last event that was folded
	stored  uint64               // sequence up to which there is a snapshot
	errands map[string]time.Time // when what follows from the state was last sent
	entries map[string]string    // what the registry was last told, by what it is about
}

// offices keeps the offices of a process: those that are in use, and the last ones that
// were.
type offices struct {
	store  *eventlog.Store
	source string
	now    func() time.Time
	starts *headStarts

	mu     sync.Mutex
	pinned map[subject.Log]*office
	recent *lru.Cache[subject.Log, *office]
}

func newOffices(store *eventlog.Store, starts *headStarts, source string, now func() time.Time) (*offices, error) {
	recent, err := lru.New[subject.Log, *office](cachedOffices)
	if err != nil {
		return nil, fmt.Errorf("cache of teams: %w", err)
	}
	return &offices{store: store, starts: starts, source: source, now: now, pinned: map[subject.Log]*office{}, recent: recent}, nil
}

// get returns the office of a team.
func (f *offices) get(log subject.Log) *office {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.find(log)
}

// pin returns the office of a team, which stays the only one until unpin.
func (f *offices) pin(log subject.Log) *office {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.find(log)
	f.pinned[log] = o
	f.recent.Remove(log)
	return o
}

func (f *offices) unpin(log subject.Log) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o, ok := f.pinned[log]; ok {
		delete(f.pinned, log)
		f.recent.Add(log, o)
	}
}

// find is get while mu is held.
func (f *offices) find(log subject.Log) *office {
	if o, ok := f.pinned[log]; ok {
		return o
	}
	if o, ok := f.recent.Get(log); ok {
		return o
	}
	o := &office{log: log, source: f.source, now: f.now, store: f.store, starts: f.starts}
	o.open()
	f.recent.Add(log, o)
	return o
}

// renew makes the office read its log anew, if that is what its error asks for: it was
// lost, or holds what could not be read.
func (f *offices) renew(o *office, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken != nil || errors.Is(err, eventlog.ErrBeyondEnd) || errors.Is(err, eventlog.ErrUnreadable) {
		o.open()
	}
}

// open begins at the head of the log. mu is held, or nobody knows the office yet.
func (o *office) open() {
	o.state, o.broken, o.begun, o.start, o.wrong, o.last, o.stored = teamwork.State{}, nil, false, nil, false, "", 0
	o.errands, o.entries = map[string]time.Time{}, map[string]string{}
	o.writer = o.store.Writer(o.log, o.observe)
}

// observe folds an entry of the log.
func (o *office) observe(e *eventlog.Entry) {
	o.last = e.ID
	if s := o.start; s != nil { // the log has to go on where the snapshot ends
		o.start, o.wrong = nil, e.Sequence != s.Seq || e.ID != s.Event
		return
	}
	if err := o.state.Apply(e.Event); err != nil && o.broken == nil {
		o.broken = err
	}
}

// sync reads the log to its end, beginning with the newest snapshot if it is the first
// time. mu is held.
func (o *office) sync(ctx context.Context) error {
	if !o.begun {
		o.begun = true
		if start, st := o.starts.load(ctx, o.log); start != nil {
			o.start, o.state, o.stored = start, *st, start.Seq
			o.writer = o.store.WriterAfter(o.log, eventlog.Cursor{Seq: start.Seq - 1, Stream: start.Stream - 1}, o.observe)
			err := o.writer.Sync(ctx)
			if !o.wrong && o.start == nil && err == nil {
				return nil
			}
			if err != nil && !errors.Is(err, eventlog.ErrBeyondEnd) {
				o.open()
				return err
			}
			o.open() // it is of another log than there is
			o.begun = true
		}
	}
	return o.writer.Sync(ctx)
}

// keep stores a snapshot from time to time. mu is held.
func (o *office) keep(ctx context.Context) {
	if at := o.writer.Cursor(); o.broken == nil && at.Seq >= o.stored+startEvery {
		o.stored = at.Seq
		o.starts.store(ctx, o.log, at, o.last, &o.state)
	}
}

// look reads the log to its end and calls f with the state, which must not be kept.
func (o *office) look(ctx context.Context, f func(*teamwork.State) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.sync(ctx); err != nil {
		return fmt.Errorf("team %s: %w", o.log.Entity, err)
	}
	if o.broken != nil {
		return command.Permanent(o.broken)
	}
	o.keep(ctx)
	return f(&o.state)
}

// glance is look for what this process knows already.
func (o *office) glance(f func(*teamwork.State)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f(&o.state)
}

// change appends what decide calls for until it calls for nothing more. decide is a
// pure function of the state; round says how often what it called for was appended. The
// state is that of the whole log if fresh, otherwise that of what this process has seen,
// until an append shows that there is more.
func (o *office) change(ctx context.Context, fresh bool, decide func(st *teamwork.State, round int) ([]decision.Fact, error)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if fresh || !o.begun {
		if err := o.sync(ctx); err != nil {
			return fmt.Errorf("team %s: %w", o.log.Entity, err)
		}
	}
	for round := 0; ; round++ {
		n := 0
		err := o.writer.Append(ctx, func() ([]event.Event, error) {
			if o.broken != nil {
				return nil, command.Permanent(o.broken)
			}
			facts, err := decide(&o.state, round)
			if err != nil {
				return nil, err
			}
			n = len(facts)
			return o.events(ctx, facts)
		})
		if err != nil {
			return fmt.Errorf("team %s: %w", o.log.Entity, err)
		}
		if n == 0 {
			o.keep(ctx)
			return nil
		}
	}
}

func (o *office) events(ctx context.Context, facts []decision.Fact) ([]event.Event, error) {
	events := make([]event.Event, 0, len(facts))
	for _, f := range facts {
		e, err := event.New(o.log, f.ID, o.source, o.now(), f.Data)
		if err != nil {
			return nil, err
		}
		e.TraceParent = telemetry.Inject(ctx)
		events = append(events, e)
	}
	return events, nil
}

// encode returns v, whose fields all have a JSON form, as JSON.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // a value of this program that has no JSON form
	}
	return raw
}
