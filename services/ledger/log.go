package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// Config says how logs are folded into the state S and appended to. The zero S is the
// state of a log without events.
type Config[S any] struct {
	Store     *eventlog.Store
	Source    string                      // source of the appended events
	Now       func() time.Time            // time of the appended events; nil = time.Now
	Fold      func(*S, event.Event) error // folds the next event; its first error breaks the log
	Snapshots *Snapshots[S]               // nil: every log is read from its beginning
	Begun     func(*S)                    // called when a fold begins, with the state of its snapshot, which it must not keep, nil at the log's beginning; nil: not called
	Cached    int                         // folds that Logs keeps besides the pinned ones and those at rest; default 64 with snapshots, 512 without
	Events    uint64                      // events of all these folds; one fold may have more; default 100,000
}

func (c Config[S]) withDefaults() Config[S] {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Cached <= 0 {
		c.Cached = cachedLogs
		if c.Snapshots != nil {
			c.Cached = cachedAwake
		}
	}
	if c.Events == 0 {
		c.Events = cachedEvents
	}
	return c
}

// Log is the fold of one log with the writer that keeps it up to date. Its methods are
// safe for concurrent use, unless they say otherwise.
type Log[S any] struct {
	Ref    subject.Log
	Outbox Outbox // commands that this process has sent because of the log
	cfg    Config[S]
	armed  time.Time // setting of the log's timer, as far as this process knows; see Service.SetTimer

	mu     sync.Mutex
	state  S
	writer *eventlog.Writer
	broken error    // of the first event that could not be folded
	puts   []string // ids of events that Put has still to append

	begun  bool      // a snapshot was looked for
	start  *snapshot // a snapshot that the event at its end has still to confirm
	wrong  bool      // that event is another one
	last   string    // id of the last folded event
	stored uint64    // sequence of the newest snapshot
	place  place     // of that snapshot

	size atomic.Uint64 // folded events
}

// Open returns a log that has read nothing yet. It is for a single use; see Logs for
// logs that are used again.
func Open[S any](cfg Config[S], ref subject.Log) *Log[S] {
	l := &Log[S]{Ref: ref, cfg: cfg.withDefaults()}
	l.discard()
	return l
}

// Fold reads a log from its beginning and returns its state. It returns the errors of
// eventlog.Store.Read and the first error of fold.
func Fold[S any](ctx context.Context, store *eventlog.Store, ref subject.Log, fold func(*S, event.Event) error) (S, error) {
	var state S
	err := store.Read(ctx, ref, eventlog.Cursor{}, func(e *eventlog.Entry) error { return fold(&state, e.Event) })
	return state, err
}

// discard forgets the fold: the next call reads the log anew. mu is held, or the log has
// no other user yet.
func (l *Log[S]) discard() {
	var none S
	l.state, l.broken, l.puts, l.armed = none, nil, nil, time.Time{}
	l.begun, l.start, l.wrong, l.last, l.stored, l.place = false, nil, false, "", 0, place{}
	l.Outbox.clear()
	l.size.Store(0)
	l.writer = l.cfg.Store.Writer(l.Ref, l.fold)
	if l.cfg.Begun != nil {
		l.cfg.Begun(nil)
	}
}

// fold takes the next entry of the log.
func (l *Log[S]) fold(e *eventlog.Entry) {
	l.last = e.ID
	if s := l.start; s != nil { // the log has to continue where the snapshot ends
		l.start, l.wrong = nil, e.Sequence != s.Seq || e.ID != s.Event
		return
	}
	l.size.Add(1)
	if err := l.cfg.Fold(&l.state, e.Event); err != nil && l.broken == nil {
		l.broken = err
	}
	if len(l.puts) > 0 && l.puts[0] == e.ID {
		l.puts = l.puts[1:]
	}
}

// usable returns why the log cannot be used. mu is held.
func (l *Log[S]) usable() error {
	if l.broken == nil || l.writer.Deleted() {
		return nil
	}
	return command.Permanent(l.broken)
}

// settle ends a call that used the log: it keeps a snapshot from time to time, or
// discards a broken fold. mu is held.
func (l *Log[S]) settle(ctx context.Context, err error) error {
	switch {
	case err == nil:
		if x := l.cfg.Snapshots; x != nil && !x.Lazy {
			l.keep(ctx)
		}
	case l.broken != nil, errors.Is(err, eventlog.ErrBeyondEnd), errors.Is(err, eventlog.ErrUnreadable):
		l.discard()
	}
	return err
}

// Sync reads the log to its end. Every event whose append had succeeded before the call
// is folded when it returns nil. Otherwise it returns the errors of eventlog.Writer.Sync,
// or why the log is broken.
func (l *Log[S]) Sync(ctx context.Context) error {
	return l.Read(ctx, func(*S) error { return nil })
}

// Recall folds what this process has appended to the log since, and reports whether that is likely all: see
// eventlog.Writer.Recall.
func (l *Log[S]) Recall() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cfg.Snapshots != nil && !l.begun {
		return false
	}
	return l.writer.Recall() && l.usable() == nil
}

// SyncTo is Sync for a caller that needs the log only up to a position that the log has: see eventlog.Writer.SyncTo.
func (l *Log[S]) SyncTo(ctx context.Context, end eventlog.Cursor) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cfg.Snapshots != nil && !l.begun {
		return l.settle(ctx, l.sync(ctx))
	}
	err := l.writer.SyncTo(ctx, end)
	if err == nil {
		err = l.usable()
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w", l.Ref.Kind, l.Ref.Entity, err)
	}
	return l.settle(ctx, err)
}

func (l *Log[S]) sync(ctx context.Context) error {
	resumed, err := l.resume(ctx)
	if err == nil && !resumed {
		err = l.writer.Sync(ctx)
	}
	if err == nil {
		err = l.usable()
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", l.Ref.Kind, l.Ref.Entity, err)
	}
	return nil
}

// Read is Sync, and then calls f with the state, which f must not keep. It returns f's
// error unchanged.
func (l *Log[S]) Read(ctx context.Context, f func(*S) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.settle(ctx, l.sync(ctx)); err != nil {
		return err
	}
	return f(&l.state)
}

// Peek calls f with the state as far as this process knows it, which f must not keep.
func (l *Log[S]) Peek(f func(*S)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.state)
}

// State returns the state. It is for a log with one user: the handler of a command, or
// the function that has opened the log.
func (l *Log[S]) State() *S { return &l.state }

// Cursor returns the position of the last folded event.
func (l *Log[S]) Cursor() eventlog.Cursor {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writer.Cursor()
}

// Deleted reports whether the log ends with a tombstone, as far as it was read.
func (l *Log[S]) Deleted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writer.Deleted()
}

// Append appends the events that decide returns. If another event comes first, Append calls decide
// again, which then returns only the missing events; see eventlog.Writer.Append.
// decide must be a pure function of the state. Append reads the log first if it was
// never read or the outcome of the last append is unknown.
func (l *Log[S]) Append(ctx context.Context, decide func(*S) ([]event.Event, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.append(ctx, decide)
}

func (l *Log[S]) append(ctx context.Context, decide func(*S) ([]event.Event, error)) error {
	if l.cfg.Snapshots != nil && !l.begun {
		if err := l.sync(ctx); err != nil {
			return l.settle(ctx, err)
		}
	}
	return l.settle(ctx, l.writer.Append(ctx, func() ([]event.Event, error) {
		if err := l.usable(); err != nil {
			return nil, err
		}
		return decide(&l.state)
	}))
}

// Put is Append for events whose ids are known before: build returns those with the ids
// that are left. Once none is, it is not called again.
func (l *Log[S]) Put(ctx context.Context, ids []string, build func(s *S, left []string) ([]event.Event, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.puts = ids
	defer func() { l.puts = nil }()
	return l.append(ctx, func(s *S) ([]event.Event, error) {
		if len(l.puts) == 0 {
			return nil, nil
		}
		return build(s, l.puts)
	})
}

// Step appends one decision and returns it.
func (l *Log[S]) Step(ctx context.Context, decide func(*S) (decision.Decision, error)) (d decision.Decision, err error) {
	err = l.Append(ctx, func(s *S) ([]event.Event, error) {
		var err error
		if d, err = decide(s); err != nil {
			return nil, err
		}
		return l.events(ctx, d)
	})
	return d, err
}

// Update appends what decide calls for, until it calls for nothing more, and returns the
// first decision.
func (l *Log[S]) Update(ctx context.Context, decide func(*S) (decision.Decision, error)) (first decision.Decision, err error) {
	first, err = l.Step(ctx, decide)
	for d := first; err == nil && len(d.Facts) > 0; {
		d, err = l.Step(ctx, decide)
	}
	return first, err
}

func (l *Log[S]) events(ctx context.Context, d decision.Decision) ([]event.Event, error) {
	events := make([]event.Event, 0, len(d.Facts))
	for i, f := range d.Facts {
		e, err := event.New(l.Ref, f.ID, l.cfg.Source, l.cfg.Now(), f.Data)
		if err != nil {
			return nil, err
		}
		e.TraceParent = telemetry.Inject(ctx)
		if i == 0 {
			e.Request = d.Request
		}
		events = append(events, e)
	}
	return events, nil
}

// Deltas appends text as a sequence of events; see eventlog.Writer.Deltas. Until the
// Deltas are closed the log has no other user.
func (l *Log[S]) Deltas(ctx context.Context, pause time.Duration, build func(n int, text string) (event.Event, error), check func(*S) error) *eventlog.Deltas {
	return l.writer.Deltas(ctx, pause, build, func() error {
		if err := l.usable(); err != nil {
			return err
		}
		return check(&l.state)
	})
}

// Await folds the events that come until one passes. Until then the log has no other
// user. It returns the errors of eventlog.Store.Tail, and ctx's cause when ctx ends.
func (l *Log[S]) Await(ctx context.Context, until func(event.Event) bool) error {
	at := l.writer.Cursor()
	defer func() { l.writer = l.cfg.Store.WriterAfter(l.Ref, at, l.fold) }()
	for e, err := range l.cfg.Store.Tail(ctx, l.Ref, at) {
		if err != nil {
			return err
		}
		at = e.Cursor()
		if l.fold(e); until(e.Event) {
			return l.usable()
		}
	}
	return context.Cause(ctx)
}

// cachedLogs is the default of Config.Cached: the fold of a session, or of a team of five
// with a board, takes some 50 KB.
const cachedLogs = 512

// cachedAwake is that default for folds that can rest.
const cachedAwake = 64

// cachedEvents is the default of Config.Events: a conversation takes some 300 bytes for each event.
const cachedEvents = 100_000

// resume reads the log to its end from its newest snapshot, if snapshots are in use. It reports
// whether it did. mu is held.
func (l *Log[S]) resume(ctx context.Context) (bool, error) {
	if l.cfg.Snapshots == nil || l.begun {
		return false, nil
	}
	l.begun = true
	var from *snapshot
	err := l.writer.SyncAfter(ctx, func(end eventlog.Cursor) eventlog.Cursor {
		from = l.recall(ctx, end)
		if from == nil {
			return eventlog.Cursor{}
		}
		return eventlog.Cursor{Seq: from.Seq - 1, Stream: from.Stream - 1}
	})
	if from == nil || err == nil && l.start == nil && !l.wrong && l.broken == nil {
		return true, err
	}
	l.discard()
	if err != nil && !errors.Is(err, eventlog.ErrBeyondEnd) {
		return false, err
	}
	l.begun = true // the snapshot is of another log, or does not say what the log says
	return false, nil
}

// recall begins the fold of a log with that end with its newest snapshot, if the log is long enough to have one. mu is held.
func (l *Log[S]) recall(ctx context.Context, end eventlog.Cursor) *snapshot {
	x := l.cfg.Snapshots
	if end.Seq < x.every() {
		return nil
	}
	s, state, at := x.load(ctx, l.Ref, end.Seq)
	if l.place = at; s == nil {
		return nil
	}
	l.start, l.state, l.stored = s, *state, s.Seq
	if l.cfg.Begun != nil {
		l.cfg.Begun(&l.state)
	}
	return s
}

// Keep stores a snapshot of a log that has gone on far enough since the last one. It is for snapshots that are Lazy, at a time
// when no person waits.
func (l *Log[S]) Keep(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.writer.Deleted() {
		l.keep(ctx)
	}
}

// keep stores a snapshot from time to time. mu is held.
func (l *Log[S]) keep(ctx context.Context) {
	if l.cfg.Snapshots == nil || l.broken != nil {
		return
	}
	if at := l.writer.Cursor(); at.Seq >= l.stored+l.cfg.Snapshots.every() {
		l.stored = at.Seq
		l.place = l.cfg.Snapshots.store(ctx, l.Ref, at, l.last, &l.state, l.place)
	}
}
