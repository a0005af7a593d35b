// Package inbox keeps the inboxes of clients: one log for each client of the swarm, with copies of the events of its
// tasks, and with the messages of other clients.
//
// A client that comes back reads on from a seq, as in any log. Each copy names the event that it stands for, so a repeat is
// recognised. The inbox keeps the order of each task; events of different tasks have the order of their copies.
package inbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger"
)

const (
	// cached bounds the folded inboxes kept in memory.
	cached = 1024
	// tokenBytes make a token that cannot be guessed: 256 bits.
	tokenBytes = 32
)

// Inboxes are the logs of clients. Any replica may write any of them. It is safe for
// concurrent use.
type Inboxes struct {
	logs   *ledger.Logs[inbox]
	source string
	now    func() time.Time
}

// inbox is the fold of a client's log: the client, and how far each task's log has been
// copied.
type inbox struct {
	at      eventlog.Cursor        // of the last event
	created event.InboxCreatedData // zero if the head of the log has expired
	named   json.RawMessage        // the client's newest description of itself
	copied  map[string]uint64      // by the name of a task's log
	once    map[string]bool        // ids of what came from elsewhere than tasks
}

// New returns the inboxes in a store. source is the service in the events that it appends by itself.
func New(store *eventlog.Store, source string, now func() time.Time) (*Inboxes, error) {
	logs, err := ledger.NewLogs(ledger.Config[inbox]{Store: store, Source: source, Now: now, Fold: (*inbox).fold, Cached: cached})
	return &Inboxes{logs, source, now}, err
}

// LogOf returns the log of a client.
func LogOf(t id.Tenant, client string) subject.Log {
	return subject.Log{Tenant: t, Kind: id.KindInbox, Entity: id.EntityFromExternal(client)}
}

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

// Owner is a client as it opens its inbox again.
type Owner struct {
	Client, Principal string
	Token             string // the secret that Create returned
}

// Create creates the inbox of a new client of the principal. The client's id and its token are random. at is the place
// of the log's first event.
func (x *Inboxes) Create(ctx context.Context, t id.Tenant, principal string) (client, token string, at eventlog.Cursor, err error) {
	secret := make([]byte, tokenBytes)
	rand.Read(secret) // never fails: the program would crash
	token, client = hex.EncodeToString(secret), "client_"+uuid.NewString()
	log := LogOf(t, client)
	created, err := event.New(log, "created", x.source, x.now(), event.InboxCreatedData{
		ClientID: client, Principal: principal, TokenSHA256: digest(token),
	})
	if err != nil {
		return "", "", at, err
	}
	l := x.logs.Get(log)
	err = l.Append(ctx, func(b *inbox) ([]event.Event, error) {
		if b.exists() {
			return nil, nil
		}
		return []event.Event{created}, nil
	})
	return client, token, l.Cursor(), err
}

// digest is the form in which a log keeps a token.
func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Last returns the place of an inbox's newest event. It reports whether the inbox is the owner's.
func (x *Inboxes) Last(ctx context.Context, log subject.Log, o Owner) (at eventlog.Cursor, own bool, err error) {
	err = x.logs.Get(log).Read(ctx, func(b *inbox) error {
		at, own = b.at, b.belongsTo(o)
		return nil
	})
	return at, own, err
}

func (b *inbox) belongsTo(o Owner) bool {
	right := subtle.ConstantTimeCompare([]byte(digest(o.Token)), []byte(b.created.TokenSHA256)) == 1
	return b.created.ClientID == o.Client && b.created.Principal == o.Principal && right
}

// Has reports whether a log exists.
func (x *Inboxes) Has(ctx context.Context, log subject.Log) (known bool, err error) {
	err = x.logs.Get(log).Read(ctx, func(b *inbox) error {
		known = b.exists()
		return nil
	})
	return known, err
}

// Describe appends a client's description of itself to a log that exists, if it differs from the newest one. It reports
// whether the log exists.
func (x *Inboxes) Describe(ctx context.Context, log subject.Log, data event.InboxRegisteredData) (known bool, err error) {
	e, err := x.event(ctx, log, "registered."+uuid.NewString(), data)
	if err != nil {
		return false, err
	}
	return x.append(ctx, log, e, func(b *inbox) bool { return bytes.Equal(b.named, e.Data) })
}

// Add appends one event to a log that exists, once by its id. It reports whether the
// log exists.
func (x *Inboxes) Add(ctx context.Context, log subject.Log, eventID string, data event.Data) (known bool, err error) {
	e, err := x.event(ctx, log, eventID, data)
	if err != nil {
		return false, err
	}
	return x.append(ctx, log, e, func(b *inbox) bool { return b.once[eventID] })
}

// event returns an event that continues the trace of its cause.
func (x *Inboxes) event(ctx context.Context, log subject.Log, eventID string, data event.Data) (event.Event, error) {
	e, err := event.New(log, eventID, x.source, x.now(), data)
	e.TraceParent = telemetry.Inject(ctx)
	return e, err
}

// append appends an event to a log that exists, unless the log has it.
func (x *Inboxes) append(ctx context.Context, log subject.Log, e event.Event, has func(*inbox) bool) (known bool, err error) {
	err = x.logs.Get(log).Append(ctx, func(b *inbox) ([]event.Event, error) {
		if known = b.exists(); !known || has(b) {
			return nil, nil
		}
		return []event.Event{e}, nil
	})
	return known, err
}

// Relay copies consecutive events of a task's log into a client's log, in order, without those that
// it has already, and without those that do not concern clients. A client without a log gets none. An event that cannot
// be copied is a permanent error.
func (x *Inboxes) Relay(ctx context.Context, to, from subject.Log, events []event.Event) error {
	name := from.Name()
	return x.logs.Get(to).Append(ctx, func(b *inbox) ([]event.Event, error) {
		if !b.exists() {
			return nil, nil
		}
		var out []event.Event
		for _, e := range events {
			if e.Sequence <= b.copied[name] || !visible(e) {
				continue
			}
			c, err := Copy(to, e)
			if err != nil {
				return nil, command.Permanent(err)
			}
			out = append(out, c)
		}
		return out, nil
	})
}
