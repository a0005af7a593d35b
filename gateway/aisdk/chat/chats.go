// Package chat binds HTTP requests to chats of the AI SDK: logs of sessions, whose chunks depend on what came before. A request gets a
// projection of the log (package aisdk/fold) at its position, with which a stream of the log continues.
package chat

import (
	"context"
	"errors"

	"github.com/waggle-dev/waggle/gateway/aisdk/fold"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Bounds of the folds that are kept. One has at most 2 MiB of messages, and usually some KiB.
const (
	stateBytes = 64 << 20
	stateMarks = 16
)

// Chats are the chats of a gateway. All methods are safe for concurrent use.
type Chats struct {
	g      *binding.Gateway
	states *stream.Folds[state, folded]
}

// state names the fold of a chat.
type state struct {
	log     subject.Log
	options fold.Options
}

// folded is a chat as the cache keeps it.
type folded struct{ *fold.Chat }

// Fork implements stream.Fold.
func (f folded) Fork() folded { return folded{f.Chat.Fork()} }

// New returns the chats of a gateway.
func New(g *binding.Gateway) *Chats {
	begin := func(s state) folded { return folded{fold.New(s.options)} }
	return &Chats{g: g, states: stream.NewFolds(stateBytes, stateMarks, begin)}
}

// Place is the chat that a request is about.
type Place struct {
	Log     subject.Log
	Options fold.Options
	To      Response // nil for requests without a stream
}

// exists returns the end of the chat's log. A chat that the client does not see does not exist.
func (t *Chats) exists(ctx context.Context, c *edge.Client, at Place) (last eventlog.Cursor, err error) {
	if last, err = t.end(ctx, c, at); err == nil && last.Seq == 0 {
		err = fault.New(fault.SessionNotFound)
	}
	return last, err
}

// end returns the end of the chat's log, zero for a chat without events.
func (t *Chats) end(ctx context.Context, c *edge.Client, at Place) (last eventlog.Cursor, err error) {
	if err = c.Sees(ctx, at.Log, fault.New(fault.SessionNotFound)); err != nil {
		return last, err
	}
	last, err = t.g.Log.Last(ctx, at.Log)
	return last, stream.Gone(err)
}

// tip calls visit with the fold of the chat at its end, at least up to the event with the sequence. visit must not keep the fold.
func (t *Chats) tip(ctx context.Context, at Place, last uint64, visit func(*fold.Chat, eventlog.Cursor) error) error {
	read := func(after eventlog.Cursor, take func(event.Event)) error {
		_, err := t.read(ctx, at, after, last, take)
		return err
	}
	return t.states.End(state{at.Log, at.Options}, last, read, func(f folded, end eventlog.Cursor) error { return visit(f.Chat, end) })
}

// before returns the fold of the chat up to the event with the sequence, which is the caller's.
func (t *Chats) before(ctx context.Context, at Place, seq uint64) (*fold.Chat, eventlog.Cursor, error) {
	var first uint64
	f, end, err := t.states.Before(state{at.Log, at.Options}, seq, func(after eventlog.Cursor, take func(event.Event)) (err error) {
		first, err = t.read(ctx, at, after, seq, take)
		return err
	})
	if err == nil && f.Seq() < seq {
		t.g.Metrics.Expired.Inc()
		err = Expired{fault.New(fault.HeadExpired), first}
	}
	return f.Chat, end, err
}

// Expired is the fault of a position whose events have expired.
type Expired struct {
	*fault.Fault
	First uint64 // the sequence of the oldest event that is left
}

// Unwrap returns the fault.
func (e Expired) Unwrap() error { return e.Fault }

// read reads the log of a chat up to the event with the sequence. A log whose beginning has expired is read from what it has.
func (t *Chats) read(ctx context.Context, at Place, after eventlog.Cursor, last uint64, take func(event.Event)) (first uint64, err error) {
	first, err = stream.ReadLeft(ctx, t.g.Log, at.Log, after, last, func(e *eventlog.Entry) error {
		take(e.Event)
		return nil
	})
	return first, stream.Gone(err)
}

// page bounds the messages of a history.
const page = 200

// History is the messages of a chat.
type History struct {
	Messages []fold.Message `json:"messages"`
	More     bool           `json:"more"` // older ones exist
}

// History returns the newest messages of a chat, those of a chat without events for one that does not exist yet.
func (t *Chats) History(ctx context.Context, c *edge.Client, at Place) (h History, err error) {
	h.Messages = []fold.Message{}
	last, err := t.end(ctx, c, at)
	if err != nil || last.Seq == 0 {
		return h, err
	}
	return h, t.tip(ctx, at, last.Seq, func(f *fold.Chat, _ eventlog.Cursor) error {
		h.Messages, h.More = f.Messages(page)
		return nil
	})
}

// Stop stops a run of a chat, or the active one for an empty id.
func (t *Chats) Stop(ctx context.Context, c *edge.Client, at Place, runID string) error {
	last, err := t.exists(ctx, c, at)
	if err != nil {
		return err
	}
	var i dialect.Intent
	err = t.tip(ctx, at, last.Seq, func(f *fold.Chat, _ eventlog.Cursor) (err error) {
		i, err = f.Stops(runID)
		return err
	})
	if err != nil {
		return err
	}
	cmds, err := binding.Commands(nil, at.Log, i)
	if err != nil {
		return err
	}
	return c.Do(ctx, "", cmds...)
}

// sends sends what a request says, and returns the sequence of the last event that it has caused. Answers that come too late, or to
// nothing, change nothing: the stream shows what became of their questions.
func (t *Chats) sends(ctx context.Context, c *edge.Client, at Place, m fold.Meaning) (seq uint64, err error) {
	if err := t.g.StoreFiles(ctx, c, at.Log, m.Intents); err != nil {
		return 0, err
	}
	cmds, err := binding.Commands(nil, at.Log, m.Intents...)
	if err != nil {
		return 0, err
	}
	for _, cmd := range cmds {
		e, err := c.Outcome(ctx, at.Log, cmd, caused(cmd.ID))
		if f, is := errors.AsType[edge.Refusal](err); is && late(f.Code) {
			continue
		}
		if err != nil {
			return 0, err
		}
		seq = max(seq, e.Sequence)
		if d, err := event.As[event.MessageRefusedData](e); err == nil && e.Type == event.MessageRefused {
			return 0, fault.Newf(fault.Code(d.Code), "%s", d.Message)
		}
		if d, err := event.As[event.PlanInvalidData](e); err == nil && e.Type == event.PlanInvalid {
			return 0, fault.Newf(fault.Code(d.Code), "%s", d.Message).At("messages")
		}
	}
	return seq, nil
}

// late reports whether an answer is refused with the code because its question is over.
func late(code fault.Code) bool {
	switch code {
	case fault.InputAnswered, fault.InputExpired, fault.InputNotFound, fault.TaskFinished, fault.RunOver:
		return true
	}
	return false
}

// caused reports whether an event is what the command with the id has caused.
func caused(commandID string) func(event.Event) bool {
	return func(e event.Event) bool {
		switch e.Type {
		case event.MessageReceived:
			d, err := event.As[event.MessageReceivedData](e)
			return err == nil && d.MessageID == commandID
		case event.MessageRefused:
			d, err := event.As[event.MessageRefusedData](e)
			return err == nil && d.MessageID == commandID
		case event.InputAnswered:
			d, err := event.As[event.InputAnsweredData](e)
			return err == nil && d.CommandID == commandID
		}
		return false
	}
}
