package task

import (
	"context"
	"time"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger"
)

// cachedInboxes bounds the folded inboxes kept in memory.
const cachedInboxes = 1024

// exists reports whether the client has a log.
func (b *inbox) exists() bool { return b.at.Seq > 0 }

// fold folds the next event of the log.
func (b *inbox) fold(e event.Event) (err error) {
	if !b.exists() {
		b.copied, b.once = map[string]uint64{}, map[string]bool{}
	}
	b.at = eventlog.Cursor{Seq: e.Sequence, Stream: e.Stream}
	switch e.Type {
	case event.InboxCreated:
		b.created, err = event.As[event.InboxCreatedData](e)
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
	return err
}

func newInboxes(log *eventlog.Store, now func() time.Time) (*inboxes, error) {
	logs, err := ledger.NewLogs(ledger.Config[inbox]{Store: log, Source: source, Now: now, Fold: (*inbox).fold, Cached: cachedInboxes})
	return &inboxes{logs, now}, err
}

func clientLog(t id.Tenant, client string) subject.Log {
	return subject.Log{Tenant: t, Kind: id.KindInbox, Entity: id.EntityFromExternal(client)}
}

// add appends one event to a log that exists, once by its id. It reports whether the
// log exists.
func (x *inboxes) add(ctx context.Context, log subject.Log, eventID string, data event.Data) (known bool, err error) {
	e, err := event.New(log, eventID, source, x.now(), data)
	if err != nil {
		return false, err
	}
	e.TraceParent = telemetry.Inject(ctx)
	err = x.Get(log).Append(ctx, func(b *inbox) ([]event.Event, error) {
		if known = b.exists(); !known || b.once[eventID] {
			return nil, nil
		}
		return []event.Event{e}, nil
	})
	return known, err
}

// relay copies consecutive events of a task's log into a client's log, in order, without those that
// it has already. A client without a log gets none.
func (x *inboxes) relay(ctx context.Context, to, from subject.Log, events []event.Event) error {
	name := from.Name()
	return x.Get(to).Append(ctx, func(b *inbox) ([]event.Event, error) {
		if !b.exists() {
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
}
