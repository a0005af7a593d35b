package chat

import (
	"context"
	"encoding/json"

	"github.com/waggle-dev/waggle/gateway/aisdk/fold"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/agents"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Send does what a request says, and returns the stream that shows what follows from it.
func (t *Chats) Send(ctx context.Context, c *edge.Client, at Place, q *fold.Request) (*Stream, error) {
	last, err := t.end(ctx, c, at)
	if err != nil {
		return nil, err
	}
	var m fold.Meaning
	err = t.tip(ctx, at, last.Seq, func(f *fold.Chat, _ eventlog.Cursor) (err error) {
		m, err = f.Means(q)
		return err
	})
	if err != nil {
		return nil, err
	}
	if m.Kind == fold.Speak {
		if err := t.ready(ctx, c, at, q, last); err != nil {
			return nil, err
		}
	}
	seq, err := t.sends(ctx, c, at, m)
	if err != nil {
		return nil, err
	}
	s := newStream(ctx, t, c, at)
	if seq = max(seq, last.Seq); m.Kind == fold.Continue {
		return s, s.continues(seq, m)
	}
	return s, s.answers(seq, m.Command)
}

// ready makes the session of a chat that does not exist. The agent that is to answer has to exist.
func (t *Chats) ready(ctx context.Context, c *edge.Client, at Place, q *fold.Request, last eventlog.Cursor) error {
	if q.Agent != "" {
		if _, err := agents.Named(ctx, t.g.Bus, c.Principal(), q.Agent); err != nil {
			return err
		}
	}
	if last.Seq > 0 {
		return nil
	}
	extra, err := json.Marshal(map[string]map[string]string{"aisdk": {"chat_id": q.ID}})
	if err != nil {
		return err
	}
	cmd, err := edge.Opening(at.Log, command.OpenSession{Dialect: c.Protocol(), Preferences: event.Preferences{
		ClientID: q.ClientID, Language: q.Language, Extra: extra,
	}})
	if err != nil {
		return err
	}
	first := command.Command{Service: command.Pipeline, Verb: command.SendMessage, Tenant: at.Log.Tenant, Key: at.Log.Entity}
	if err := c.MayBegin(ctx, first); err != nil {
		return err
	}
	_, err = c.Outcome(ctx, at.Log, cmd, func(e event.Event) bool { return e.Type == event.SessionCreated })
	return err
}

// answers shows the run that answers a message.
func (s *Stream) answers(last uint64, command string) error {
	var waits *fold.Queued
	err := s.join(last, func(f *fold.Chat) {
		s.run, waits = f.Answering(command)
	})
	newest, _ := s.chat.Run()
	switch {
	case err != nil:
		return err
	case s.run == "":
		return fault.New(fault.RunNotFound)
	case waits != nil:
		s.least = 1
		s.first = append(s.first, told(fold.Chunk{Type: fold.DataQueued, Transient: true, Data: *waits}))
		return nil
	case newest == s.run:
		return s.stands(s.chat.Prelude())
	}
	frames := s.chat.Replay(s.run)
	if len(frames) == 0 {
		return fault.New(fault.RunNotFound)
	}
	s.show(frames)
	s.finish()
	return nil
}

// Resume shows the newest run of a chat if it is active: its whole message, or what follows a position.
func (t *Chats) Resume(ctx context.Context, c *edge.Client, at Place, after *transport.Position) (*Stream, error) {
	last, err := t.exists(ctx, c, at)
	if err != nil {
		return nil, err
	}
	s := newStream(ctx, t, c, at)
	if after != nil {
		return s, s.after(*after, last)
	}
	t.g.Metrics.Resumes.WithLabelValues("cold").Inc()
	if err := s.join(last.Seq, func(*fold.Chat) {}); err != nil {
		return s, err
	}
	run, active := s.chat.Run()
	if !active {
		s.over = true
		return s, nil
	}
	s.run = run
	return s, s.stands(s.chat.Prelude())
}

// join places the stream at the end of the log.
func (s *Stream) join(last uint64, look func(*fold.Chat)) error {
	size := 0
	err := s.t.tip(s.ctx, s.at, last, func(f *fold.Chat, end eventlog.Cursor) error {
		look(f)
		s.chat, s.from, size = f.Fork(), end, f.Size()
		s.least = f.Stretch()
		return nil
	})
	if err != nil {
		return err
	}
	return s.reserve(size)
}

// stands shows the newest run as it stands. The stream is over if nothing follows without an answer.
func (s *Stream) stands(frames []fold.Frame) error {
	s.show(frames)
	if _, active := s.chat.Run(); !active || s.chat.Resting() {
		s.finish()
	}
	return nil
}

// continues shows what follows the part of the newest message that the client has.
func (s *Stream) continues(last uint64, m fold.Meaning) error {
	var rested uint64
	err := s.join(last, func(f *fold.Chat) { rested = f.Rested(m.Stretch) })
	if err != nil {
		return err
	}
	run, active := s.chat.Run()
	s.run = run
	switch {
	case !m.Known, (!active || s.chat.Resting()) && m.Stretch >= s.least:
		s.show(s.chat.Nothing())
		s.finish()
		return nil
	case rested == 0: // it was cut within the stretch
		return s.stands(s.chat.Again())
	}
	s.chat, s.from, err = s.t.before(s.ctx, s.at, rested)
	return err
}

// after places the stream after a position: what follows is as if the stream had never broken.
func (s *Stream) after(at transport.Position, last eventlog.Cursor) error {
	if at.Seq == 0 || at.Seq > last.Seq {
		return fault.Newf(fault.CursorInvalid, "This is not a position in the chat. Use the id of the last event that you received.")
	}
	s.t.g.Metrics.Resumes.WithLabelValues("warm").Inc()
	if err := s.join(last.Seq, func(*fold.Chat) {}); err != nil {
		return err
	}
	newest, _ := s.chat.Run()
	most, resting := s.least, s.chat.Resting()
	upTo := at.Seq
	if at.Part > 0 {
		upTo, s.skip = at.Seq-1, at.Part
	}
	var err error
	if s.chat, s.from, err = s.t.before(s.ctx, s.at, upTo); err != nil {
		return err
	}
	run, active := s.chat.Run()
	if s.run = run; run == "" || !active && s.skip == 0 {
		s.over = true
		return nil
	}
	if s.least = s.chat.Stretch(); newest == run {
		s.least = most
		s.over = resting && s.chat.Resting() && s.chat.Stretch() == most && s.skip == 0
	}
	return nil
}
