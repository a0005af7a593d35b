package thread

import (
	"context"
	"encoding/json"
	"errors"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Run carries a request for a run out, and returns the stream that shows it once the log has taken what it asks for.
func (t *Threads) Run(ctx context.Context, c *edge.Client, at Place, q input.Request) (*Stream, error) {
	last, err := t.end(ctx, c, at)
	if q.Team && err == nil && last.Seq == 0 {
		err = fault.New(missing(at))
	}
	if err != nil {
		return nil, err
	}
	s := newStream(ctx, t, c, at)
	s.run = q.RunID
	var m fold.Meaning
	var open []wire.Interrupt
	err = t.folded(ctx, at, last, func(base *fold.Thread, end eventlog.Cursor) (err error) {
		m, err = base.Means(q)
		open, _ = base.Questions()
		s.thread, s.after = base.Clone(at.Name), end
		return err
	})
	if f := (*fault.Fault)(nil); errors.As(err, &f) && f.Code == fault.InputRequired {
		return nil, Detailed{f, map[string]any{"interrupts": open}}
	}
	if err != nil {
		return nil, err
	}
	if m.Kind != fold.Speak || m.Edited || q.Team { // it may show all messages
		if err := s.reserve(s.thread.Size()); err != nil {
			return nil, err
		}
	}
	s.remark(m)
	return s, s.carryOut(ctx, c, q, m, last)
}

// carryOut does what a request for a run means.
func (s *Stream) carryOut(ctx context.Context, c *edge.Client, q input.Request, m fold.Meaning, last eventlog.Cursor) error {
	s.cancels = q.OnDisconnect == input.OnDisconnectCancel
	switch m.Kind {
	case fold.Repeat:
		return s.again(ctx, last)
	case fold.Look:
		s.look(q)
		return nil
	case fold.Reply:
		return s.replies(ctx, c, m)
	}
	if q.Team {
		return s.tells(ctx, c, m)
	}
	return s.speaks(ctx, c, q, m, last)
}

// tells sends a team a message and waits until the log has it, or it is refused. If the team is at work, its run is shown under the
// id of the request.
func (s *Stream) tells(ctx context.Context, c *edge.Client, m fold.Meaning) error {
	return s.give(ctx, c, m, func() (bool, error) {
		if !s.answers.settled() {
			return false, nil
		}
		for _, d := range s.answers.refused {
			return true, fault.Newf(fault.Code(d.Code), "%s", d.Message).At(d.Field)
		}
		if s.thread.Newest() != s.run {
			s.called, s.run, s.first = s.run, s.thread.Newest(), nil
			s.prelude()
		}
		return true, nil
	})
}

// look shows the thread: the active run, under the id of the request, or nothing but its messages.
func (s *Stream) look(q input.Request) {
	if _, active := s.thread.Run(); active { // perhaps it waits for results of the client's tools
		s.run = s.thread.Newest()
		s.thread.Call(q.RunID)
		s.show(s.thread.Prelude())
		return
	}
	s.show(s.thread.Idle(q.RunID, q.ParentRunID))
}

// speaks sends a message and waits until the log has it.
func (s *Stream) speaks(ctx context.Context, c *edge.Client, q input.Request, m fold.Meaning, last eventlog.Cursor) error {
	if q.Agent != "" {
		if _, err := s.t.Agent(ctx, c, q.Agent); err != nil {
			return err
		}
	}
	if last.Seq == 0 {
		if err := s.open(ctx, c, q); err != nil {
			return err
		}
	}
	if err := s.t.g.StoreFiles(ctx, c, s.at.Log, m.Intents); err != nil {
		return err
	}
	cmds, err := binding.Commands(nil, s.at.Log, m.Intents...)
	if err != nil {
		return err
	}
	send := func() error { return c.Do(ctx, "", cmds...) }
	return s.await(ctx, send, func(e event.Event) (bool, error) { return taken(e, cmds[len(cmds)-1].ID) })
}

// taken reports whether an event takes the message, or why it was refused.
func taken(e event.Event, id string) (bool, error) {
	switch e.Type {
	case event.MessageReceived:
		d, err := event.As[event.MessageReceivedData](e)
		return err == nil && d.MessageID == id, nil
	case event.MessageRefused:
		if d, err := event.As[event.MessageRefusedData](e); err == nil && d.MessageID == id {
			return true, fault.Newf(fault.Code(d.Code), "%s", d.Message)
		}
	}
	return false, nil
}

// open makes the session of a thread that does not exist.
func (s *Stream) open(ctx context.Context, c *edge.Client, q input.Request) error {
	extra, err := json.Marshal(map[string]input.Extra{"agui": {ThreadID: q.ThreadID}})
	if err != nil {
		return err
	}
	cmd, err := edge.Opening(s.at.Log, command.OpenSession{Dialect: c.Protocol(), Preferences: event.Preferences{
		ClientID: q.ClientID, Language: q.Language, Extra: extra,
	}})
	if err != nil {
		return err
	}
	first := command.Command{Service: command.Pipeline, Verb: command.SendMessage, Tenant: s.at.Log.Tenant, Key: s.at.Log.Entity}
	if err := c.MayBegin(ctx, first); err != nil {
		return err
	}
	send := func() error { return c.Do(ctx, "", cmd) }
	return s.await(ctx, send, func(e event.Event) (bool, error) { return e.Type == event.SessionCreated, nil })
}
