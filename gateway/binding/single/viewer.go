package single

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Viewer is the part of a binding that shows one log and sends the messages of the client about it.
type Viewer struct {
	Log subject.Log

	g      *binding.Gateway
	c      binding.Connection
	target *binding.Target
	as     edge.Recipient
	id     id.Name // of the connection; zero before it is a recipient
	reply  string  // subject for answers to commands; empty where the log tells them

	unopened *edge.Unopened // the session of the log, unless it existed when the connection began
	opener   string         // subject for its refusal

	mu     sync.Mutex
	stream *stream.Stream // nil before the log is shown
}

// NewViewer returns the viewer of a connection with the target, nil = a session.
func NewViewer(g *binding.Gateway, c binding.Connection, target *binding.Target) *Viewer {
	return &Viewer{g: g, c: c, target: target}
}

// Link makes the connection a recipient of direct messages. Where it shows a target, another client may answer a question first,
// and this one has to learn of it.
func (v *Viewer) Link(as edge.Recipient) (err error) {
	if v.id, err = v.g.Recipients.Add(as); err != nil {
		return v.c.FaultOf(err)
	}
	v.opener = v.g.Recipients.ReplyTo(v.id)
	if v.target != nil {
		v.reply = v.opener
	}
	return nil
}

// At returns what frames may say of the connection, which is a recipient.
func (v *Viewer) At() dialect.Link { return v.g.Link(v.id) }

// Find finds the log of the target, and returns its end.
func (v *Viewer) Find() (last eventlog.Cursor, err error) {
	v.Log, last, v.unopened, err = binding.Find(v.c, v.target)
	return last, err
}

// Refused reports whether an event refuses the session that the connection has opened: the message that it was opened for is
// refused, too.
func (v *Viewer) Refused(e event.Event) bool { return v.unopened != nil && v.unopened.Refused(e) }

// Show shows the log from a position, to a stream that reports to b. The opening may be nil.
func (v *Viewer) Show(b stream.Binding, codec stream.Codec, after eventlog.Cursor, opening func(*stream.Opening)) {
	s := stream.New(v.g.Streams, stream.Options{
		Life: v.c.Context(), Log: v.Log, Codec: codec, To: v.c, Slot: v.c.Slot(), Binding: b, Questions: v.c.Client().Questions(),
		Watches: v.c.Client().Watches(),
	})
	s.Watch(after, func(o *stream.Opening) {
		v.mu.Lock()
		v.stream = s // before it sends anything: Room may be called at once
		v.mu.Unlock()
		if opening != nil {
			opening(o)
		}
	})
}

// Seen implements stream.Binding.
func (v *Viewer) Seen(*stream.Stream) {
	if v.unopened != nil {
		v.unopened.Seen()
	}
}

// shown returns the stream, nil before the log is shown.
func (v *Viewer) shown() *stream.Stream {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.stream
}

// Forward sends the commands of a message, or tells the client why it does not.
func (v *Viewer) Forward(ctx context.Context, codec dialect.Codec, message []byte) error {
	err := v.send(ctx, codec, message)
	if err != nil {
		v.c.Tell(v.c.FaultOf(err))
	}
	return err
}

// send turns a message into commands and sends them.
func (v *Viewer) send(ctx context.Context, codec dialect.Codec, message []byte) error {
	if err := strictjson.Check(message); err != nil {
		return err
	}
	if p := v.c.Client().Principal(); !p.Owns(v.Log) {
		return fault.New(fault.Forbidden)
	}
	intents, err := codec.Decode(message, dialect.Inbound{Kind: v.Log.Kind, NewID: edge.NewID})
	if err != nil {
		return err
	}
	if v.target == nil {
		spoken(v.Log.Entity, v.c.Client().Questions(), intents)
	}
	reply, err := v.repliesTo(intents)
	if err != nil {
		return err
	}
	cmds, err := binding.Commands(v.target, v.Log, intents...)
	if err != nil || len(cmds) == 0 {
		return err
	}
	if v.unopened != nil {
		if err := v.unopened.Open(ctx, v.c, v.g.ReadyTimeout, v.opener, cmds...); err != nil {
			return err
		}
	}
	return v.c.Client().Do(ctx, reply, cmds...)
}

// repliesTo returns the subject for answers to the commands of intents. Another client may answer a question first, which no log
// tells this one.
func (v *Viewer) repliesTo(intents []dialect.Intent) (string, error) {
	answers := slices.ContainsFunc(intents, func(i dialect.Intent) bool { _, is := i.Data.(dialect.Answer); return is })
	if v.reply != "" || !answers {
		return v.reply, nil
	}
	if v.id.IsZero() {
		if err := v.Link(v.as); err != nil {
			return "", err
		}
	}
	return v.g.Recipients.ReplyTo(v.id), nil
}

// Principal implements edge.Recipient.
func (v *Viewer) Principal() auth.Principal { return v.c.Client().Principal() }

// Room implements binding.Binding.
func (v *Viewer) Room() {
	if s := v.shown(); s != nil {
		s.Resume()
	}
}

// Tick implements binding.Binding.
func (v *Viewer) Tick(time.Time) {
	if s := v.shown(); s != nil {
		s.TellWorkers(v.g.WorkersMissing())
	}
}

// Close implements binding.Binding.
func (v *Viewer) Close() {
	if s := v.shown(); s != nil {
		s.Close()
	}
	if !v.id.IsZero() {
		v.g.Recipients.Remove(v.id)
	}
}

// Failed implements stream.Binding.
func (v *Viewer) Failed(_ *stream.Stream, err error) { binding.Lose(v.c, err) }

// Deleted implements stream.Binding: the connection has no other log to show.
func (v *Viewer) Deleted(*stream.Stream) { v.c.End(fault.New(fault.SessionDeleted)) }
