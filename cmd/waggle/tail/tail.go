package tail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Options control the output.
type Options struct {
	Out    io.Writer
	Err    io.Writer // remarks that are not events; nil = no remarks
	JSON   bool      // the events unchanged, one a line
	Color  bool
	After  eventlog.Cursor // for a log: show only later events
	Follow bool            // for a log: continue with live events
}

// buffered is the number of announcements that may wait for a slow terminal: seconds of a busy installation. Beyond it tail
// drops announcements, and says so.
const buffered = 64 << 10

// errReading marks that the reader of the output has gone, as with "| head".
var errReading = errors.New("output closed")

// Log shows a log from its beginning and, with Follow, later events, each once and in order.
func Log(ctx context.Context, store *eventlog.Store, log subject.Log, o Options) error {
	last, err := store.Last(ctx, log)
	switch {
	case err != nil:
		return err
	case last.Seq == 0:
		return fmt.Errorf("no such %s: %s of tenant %s has no events; check the id and --tenant", log.Kind, log.Entity, log.Tenant)
	}
	if !o.Follow {
		return read(ctx, store, log, o)
	}
	for e, err := range store.Tail(ctx, log, o.After) {
		if cut, ok := errors.AsType[*eventlog.TruncatedError](err); ok {
			o.expired(cut)
			continue
		}
		if err != nil {
			return err
		}
		if err := o.print(e.Event, e.Raw); err != nil {
			return err
		}
	}
	return nil
}

// Newest shows the newest event of every log of the tenant, the oldest first.
func Newest(ctx context.Context, store *eventlog.Store, tenant id.Tenant, o Options) error {
	var all []*eventlog.Entry
	for _, kind := range []id.Kind{id.KindSession, id.KindTask, id.KindTeam} {
		heads, err := store.Heads(ctx, tenant, kind)
		if err != nil {
			return err
		}
		all = append(all, heads...)
	}
	slices.SortFunc(all, func(a, b *eventlog.Entry) int { return a.Time.Compare(b.Time) })
	for _, e := range all {
		if err := o.print(e.Event, e.Raw); err != nil {
			return err
		}
	}
	return nil
}

// read shows the stored events, from the first that has not expired.
func read(ctx context.Context, store *eventlog.Store, log subject.Log, o Options) error {
	show := func(e *eventlog.Entry) error { return o.print(e.Event, e.Raw) }
	err := store.Read(ctx, log, o.After, show)
	cut, ok := errors.AsType[*eventlog.TruncatedError](err)
	if !ok {
		return err
	}
	o.expired(cut)
	return store.Read(ctx, log, eventlog.Cursor{Seq: cut.First - 1}, show)
}

// expired reports that the beginning of the log has expired, which ends nothing.
func (o Options) expired(cut *eventlog.TruncatedError) {
	o.remark("events before seq %d have expired", cut.First)
}

func (o Options) remark(format string, args ...any) {
	if o.Err != nil {
		_, _ = fmt.Fprintf(o.Err, format+"\n", args...)
	}
}

// Subscriber is the part of a NATS connection that Announcements needs.
type Subscriber interface {
	ChanSubscribe(subject string, ch chan *nats.Msg) (*nats.Subscription, error)
}

// Announcements shows the announcements under the subject until ctx ends. Core NATS promises no more than that: earlier
// announcements are not shown. Announcements calls subscribed, which may be nil, once it will miss none.
func Announcements(ctx context.Context, nc Subscriber, pattern string, o Options, subscribed func() error) error {
	messages := make(chan *nats.Msg, buffered)
	sub, err := nc.ChanSubscribe(pattern, messages)
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", terminal.Line(pattern, 200), err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	if subscribed != nil {
		if err := subscribed(); err != nil {
			return err
		}
	}
	dropped := 0
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m := <-messages:
			if err := o.message(m); err != nil {
				return err
			}
		}
		if n, err := sub.Dropped(); err == nil && n > dropped {
			o.remark("%d announcements were not shown: they came faster than they could be written", n-dropped)
			dropped = n
		}
	}
}

func (o Options) message(m *nats.Msg) error {
	var e event.Event
	if err := json.Unmarshal(m.Data, &e); err != nil {
		_, err := fmt.Fprintf(o.Out, "%s: not an event: %s\n", terminal.Line(m.Subject, 200), terminal.Line(string(m.Data), summaryWidth))
		return err
	}
	return o.print(e, m.Data)
}

func (o Options) print(e event.Event, raw []byte) error {
	text := Line(e, o.Color)
	if o.JSON {
		text = string(terminal.ASCII(raw))
	}
	if _, err := fmt.Fprintln(o.Out, text); err != nil {
		return fmt.Errorf("%w: %w", errReading, err)
	}
	return nil
}
