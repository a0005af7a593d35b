package edge

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// DefaultMaxWait is how long a request waits for its command to be carried out or refused.
const DefaultMaxWait = 10 * time.Second

// maxDirect bounds the direct messages that wait for a request: a command is answered once.
const maxDirect = 4

// Refusal is a fault with which a service has refused a command.
type Refusal struct {
	*fault.Fault
	Data event.CommandRefusedData
}

// Unwrap returns the fault.
func (r Refusal) Unwrap() error { return r.Fault }

// reply is the recipient of the direct messages to one request.
type reply struct {
	*Client
	direct chan event.Event
}

// Receive implements Recipient.
func (r *reply) Receive(_ subject.Log, e event.Event) []byte {
	select {
	case r.direct <- e:
	default:
	}
	return Confirmed
}

// Outcome sends the command of a request that has no connection, and returns the event of the log that it has caused: the first one of
// which is returns true. The event of a command that came before is found, too; its Sequence is 0 if the log does not have it any more.
// The error is a Refusal where the service refuses the command.
func (c *Client) Outcome(ctx context.Context, log subject.Log, cmd command.Command, is func(event.Event) bool) (event.Event, error) {
	o := c.e
	last, err := o.Log.Last(ctx, log)
	if err != nil {
		return event.Event{}, gone(err)
	}
	late := fault.Newf(fault.Overloaded, "The service for this request did not respond. Send the same request again.")
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(o.MaxWait, DefaultMaxWait), late)
	defer cancel()
	r := &reply{Client: c, direct: make(chan event.Event, maxDirect)}
	name, err := o.Recipients.Add(r)
	if err != nil {
		return event.Event{}, err
	}
	defer o.Recipients.Remove(name)
	caused, stop := o.follow(ctx, log, last, is)
	defer stop()
	cmd.Again = NewID()
	if err := c.Do(ctx, o.Recipients.ReplyTo(name), cmd); err != nil {
		return event.Event{}, err
	}
	for {
		select {
		case f := <-caused:
			return f.event, f.err
		case d := <-r.direct:
			if err := refusal(d); err != nil {
				return event.Event{}, err
			}
			return o.find(ctx, log, last, is)
		case <-ctx.Done():
			return event.Event{}, context.Cause(ctx)
		}
	}
}

// found is an event of the log, or why the log cannot be followed.
type found struct {
	event event.Event
	err   error
}

// follow reads the log after a position until it has the event.
func (o *Edge) follow(ctx context.Context, log subject.Log, after eventlog.Cursor, is func(event.Event) bool) (<-chan found, func()) {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan found, 1)
	var work sync.WaitGroup
	work.Go(func() {
		for e, err := range o.Log.Tail(ctx, log, after) {
			_, cut := errors.AsType[*eventlog.TruncatedError](err)
			switch {
			case cut:
			case err != nil && ctx.Err() == nil:
				out <- found{err: gone(err)}
				return
			case err != nil:
				return
			case is(e.Event):
				out <- found{event: e.Event}
				return
			}
		}
	})
	return out, func() {
		cancel()
		work.Wait()
	}
}

// find returns the event of a command that has been carried out: one after the position or, for a command that came
// before, an older one. Its Sequence is 0 if the log does not have it any more.
func (o *Edge) find(ctx context.Context, log subject.Log, after eventlog.Cursor, is func(event.Event) bool) (out event.Event, err error) {
	for _, from := range []eventlog.Cursor{after, {}} {
		_, err = stream.ReadLeft(ctx, o.Log, log, from, stream.ToEnd, func(e *eventlog.Entry) error {
			if !is(e.Event) {
				return nil
			}
			out = e.Event
			return stream.ErrEnough
		})
		if err != nil || out.Sequence > 0 {
			return out, gone(err)
		}
	}
	return out, nil
}

// refusal returns why the service has not carried the command out, nil if it has.
func refusal(e event.Event) error {
	switch e.Type {
	case event.CommandRefused:
		d, err := event.As[event.CommandRefusedData](e)
		if err != nil {
			return err
		}
		return Refusal{fault.Newf(fault.Code(d.Code), "%s", d.Message).At(d.Field), d}
	case event.Notice:
		d, err := event.As[event.NoticeData](e)
		if err != nil {
			return err
		}
		if d.OK != nil && !*d.OK {
			f := fault.Newf(cmp.Or(fault.Code(d.Error), fault.RunOver), "%s", d.Message)
			if f.Code == fault.InvalidField {
				return f.At("question")
			}
			return f
		}
	}
	return nil
}

// Open makes a session that has no events, with its first command. A session of another name than a gateway gave the
// principal does not exist.
func (c *Client) Open(ctx context.Context, log subject.Log, cmds ...command.Command) error {
	u, ok := c.e.Awaited(c.Principal(), log)
	if !ok {
		return fault.New(fault.SessionNotFound)
	}
	if err := u.MayOpen(); err != nil {
		return err
	}
	return c.Create(ctx, log, u.Preferences(), cmds...)
}

// Create makes a session that has no events, for commands that the client may send. The id is the client's own.
func (c *Client) Create(ctx context.Context, log subject.Log, wishes event.Preferences, cmds ...command.Command) error {
	if err := c.MayBegin(ctx, cmds...); err != nil {
		return err
	}
	cmd, err := Opening(log, command.OpenSession{Dialect: c.Protocol(), Preferences: wishes})
	if err != nil {
		return err
	}
	_, err = c.Outcome(ctx, log, cmd, func(e event.Event) bool { return e.Type == event.SessionCreated })
	return err
}

// gone returns the fault of a log that cannot be read.
func gone(err error) error {
	switch {
	case errors.Is(err, eventlog.ErrDeleted):
		return fault.New(fault.SessionDeleted)
	case errors.Is(err, eventlog.ErrClosed):
		return fault.New(fault.Draining)
	}
	return err
}
