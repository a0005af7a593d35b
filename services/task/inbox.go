package task

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// cachedInboxes bounds the folded inboxes kept in memory. One that was dropped is
// folded again from its log.
const cachedInboxes = 1024

// inbox is the fold of a client's log: who the client is, and how far each task's log
// has been copied.
type inbox struct {
	mu      sync.Mutex
	writer  *eventlog.Writer
	exists  bool
	created event.InboxCreatedData // zero if the head of the log has expired
	named   json.RawMessage        // what the client said of itself last
	copied  map[string]uint64      // by the name of a task's log
	once    map[string]bool        // ids of what came from elsewhere than tasks
	broken  error
}

// observe folds the next event of the log.
func (b *inbox) observe(e *eventlog.Entry) {
	b.exists = true
	var err error
	switch e.Type {
	case event.InboxCreated:
		b.created, err = event.As[event.InboxCreatedData](e.Event)
		b.once[e.ID] = true
	case event.InboxRegistered:
		b.named = e.Data
	case event.InboxMessaged:
		b.once[e.ID] = true
	default:
		var from event.Origin
		if err = e.Decode(&from); err == nil && from.Log != "" {
			b.copied[from.Log] = max(b.copied[from.Log], from.Seq)
		}
	}
	if err != nil && b.broken == nil {
		b.broken = err
	}
}

// inboxes are the logs of clients. Any replica may write any of them: appends are
// conditional, and what is missing is decided again when somebody was faster. It is
// safe for concurrent use.
type inboxes struct {
	log   *eventlog.Store
	now   func() time.Time
	cache *lru.Cache[subject.Log, *inbox]
	mu    sync.Mutex // of cache: one inbox a log
}

func newInboxes(log *eventlog.Store, now func() time.Time) (*inboxes, error) {
	cache, err := lru.New[subject.Log, *inbox](cachedInboxes)
	return &inboxes{log: log, now: now, cache: cache}, err
}

func clientLog(t id.Tenant, client string) subject.Log {
	return subject.Log{Tenant: t, Kind: id.KindInbox, Entity: id.EntityFromExternal(client)}
}

func (x *inboxes) of(log subject.Log) *inbox {
	x.mu.Lock()
	defer x.mu.Unlock()
	if b, ok := x.cache.Get(log); ok {
		return b
	}
	b := &inbox{copied: map[string]uint64{}, once: map[string]bool{}}
	b.writer = x.log.Writer(log, b.observe)
	x.cache.Add(log, b)
	return b
}

// change appends what decide returns, which is called with the inbox as it is, again
// if somebody else was faster, and returns where the log ends then. An inbox that
// failed is folded anew.
func (x *inboxes) change(ctx context.Context, log subject.Log, decide func(*inbox) ([]event.Event, error)) (eventlog.Cursor, error) {
	b := x.of(log)
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.writer.Append(ctx, func() ([]event.Event, error) {
		if b.broken != nil {
			return nil, command.Permanent(b.broken)
		}
		return decide(b)
	})
	if err != nil {
		x.cache.Remove(log)
	}
	return b.writer.Cursor(), err
}

// add appends one event to a log that exists, once by its id. It reports whether the
// log exists.
func (x *inboxes) add(ctx context.Context, log subject.Log, eventID string, data event.Data) (known bool, err error) {
	e, err := event.New(log, eventID, source, x.now(), data)
	if err != nil {
		return false, err
	}
	e.TraceParent = telemetry.Inject(ctx)
	_, err = x.change(ctx, log, func(b *inbox) ([]event.Event, error) {
		if known = b.exists; !known || b.once[eventID] {
			return nil, nil
		}
		return []event.Event{e}, nil
	})
	return known, err
}

// read calls f with the inbox as it is now.
func (x *inboxes) read(ctx context.Context, log subject.Log, f func(*inbox)) error {
	b := x.of(log)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.writer.Sync(ctx); err != nil {
		x.cache.Remove(log)
		return err
	}
	if b.broken != nil {
		return b.broken
	}
	f(b)
	return nil
}

// relay copies events of a task's log, which follow each other, into a client's log:
// those that it does not have yet, in their order. A client without a log is told
// nothing.
func (x *inboxes) relay(ctx context.Context, to, from subject.Log, events []event.Event) error {
	name := from.Name()
	_, err := x.change(ctx, to, func(b *inbox) ([]event.Event, error) {
		if !b.exists {
			return nil, nil
		}
		var out []event.Event
		for _, e := range events {
			if e.Sequence <= b.copied[name] || !visible(e) {
				continue
			}
			c, err := copied(to, e)
			if err != nil {
				return nil, command.Permanent(err)
			}
			out = append(out, c)
		}
		return out, nil
	})
	return err
}
