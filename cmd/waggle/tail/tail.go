package tail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Options say how events are shown.
type Options struct {
	Out    io.Writer
	JSON   bool // the events as they are, one a line
	Color  bool
	After  eventlog.Cursor // a log: only what comes after it
	Follow bool            // a log: go on with what happens
}

// buffered is how many announcements may wait for a slow terminal. Beyond it the
// oldest view of things is lost, never the log.
const buffered = 64 << 10

// errReading marks that the reader of the output is gone, as with "| head".
var errReading = errors.New("output closed")

// Log shows a log from its beginning and, to follow it, what happens from then on,
// each event once and in order.
func Log(ctx context.Context, store *eventlog.Store, log subject.Log, o Options) error {
	if _, err := store.Last(ctx, log); err != nil {
		return err
	}
	if !o.Follow {
		return read(ctx, store, log, o)
	}
	for e, err := range store.Tail(ctx, log, o.After) {
		if err := missing(err, o); err != nil {
			return err
		}
		if e == nil {
			continue
		}
		if err := o.print(e.Event, e.Raw); err != nil {
			return err
		}
	}
	return nil
}

// read shows what is there. Where the beginning has expired it begins behind it.
func read(ctx context.Context, store *eventlog.Store, log subject.Log, o Options) error {
	show := func(e *eventlog.Entry) error { return o.print(e.Event, e.Raw) }
	err := store.Read(ctx, log, o.After, show)
	cut, ok := errors.AsType[*eventlog.TruncatedError](err)
	if !ok {
		return err
	}
	if err := missing(err, o); err != nil {
		return err
	}
	return store.Read(ctx, log, eventlog.Cursor{Seq: cut.First - 1}, show)
}

// missing tells that the beginning has expired, which ends nothing.
func missing(err error, o Options) error {
	cut, ok := errors.AsType[*eventlog.TruncatedError](err)
	if !ok {
		return err
	}
	if o.JSON {
		return nil
	}
	_, err = fmt.Fprintln(o.Out, terminal.Paint(o.Color, terminal.Yellow, fmt.Sprintf("events before seq %d have expired", cut.First)))
	return err
}

// Subscriber is the part of a NATS connection that Announcements needs.
type Subscriber interface {
	ChanSubscribe(subject string, ch chan *nats.Msg) (*nats.Subscription, error)
}

// Announcements shows what is announced under the subject until ctx ends. Core
// NATS promises no more than that: what was announced before is not shown.
// subscribed is called once nothing more will be missed; it may be nil.
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
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m := <-messages:
			if err := o.message(m); err != nil {
				return err
			}
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
