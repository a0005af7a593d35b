package thread

import (
	"context"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// give sends answers, or a message to a team, and waits until is returns true or an error.
func (s *Stream) give(ctx context.Context, c *edge.Client, m fold.Meaning, is func() (bool, error)) error {
	a := &answers{of: s, open: map[string]string{}}
	if err := s.t.g.StoreFiles(ctx, c, s.at.Log, m.Intents); err != nil {
		return err
	}
	cmds, err := binding.Commands(nil, s.at.Log, m.Intents...)
	if err != nil {
		return err
	}
	for n, cmd := range cmds {
		var d command.AnswerQuestion
		if err := cmd.Decode(&d); err != nil {
			return err
		}
		a.open[cmd.ID] = d.InputID
		cmds[n].Again = edge.NewID()
	}
	s.answers = a
	send := func() (err error) {
		if a.name, err = s.t.g.Recipients.Add(a); err != nil {
			return err
		}
		return c.Do(ctx, subject.ReplyTo(s.t.g.Name, a.name), cmds...)
	}
	return s.await(ctx, send, func(event.Event) (bool, error) { return is() })
}

// replies sends the answers of a request for a run, and waits until the run continues with one of them, or all have an outcome.
func (s *Stream) replies(ctx context.Context, c *edge.Client, m fold.Meaning) error {
	return s.give(ctx, c, m, func() (bool, error) {
		switch {
		case s.thread.Newest() == s.run:
			return true, nil
		case !s.shown():
			return false, nil
		case len(s.first) > 0:
			return true, nil
		}
		for _, d := range s.answers.refused { // the run has gone on without these answers, or has ended
			switch code := fault.Code(d.Code); code {
			case fault.PlanInvalid, fault.InvalidField:
				return true, fault.Newf(code, "%s", d.Message).At("resume")
			}
		}
		s.called, s.run = s.run, s.thread.Newest() // as the client calls it
		s.prelude()
		return true, nil
	})
}

// shown reports whether each answer has an outcome that the log has, too: the task of an agent that has asked refuses an answer,
// because the question is over, before the log of the thread says so. A run that ends says nothing about its questions.
func (s *Stream) shown() bool {
	if !s.answers.settled() {
		return false
	}
	if _, active := s.thread.Run(); !active {
		return true
	}
	for _, d := range s.answers.refused {
		q, known := s.thread.Question(d.InputID)
		switch fault.Code(d.Code) {
		case fault.InputAnswered, fault.InputExpired, fault.InputNotFound, fault.TaskFinished:
			if known && !q.Over && q.Scope == event.ScopeAgent {
				return false
			}
		}
	}
	return true
}

// Answer gives answers during a run, and returns when each has been taken or refused. Those that were taken under the same id of the
// same principal before are taken again: browsers repeat a request whose connection breaks.
func (t *Threads) Answer(ctx context.Context, c *edge.Client, at Place, in wire.Answers) error {
	name, err := edge.CommandID(in.ID, at.Name, c.Principal().Subject)
	if err != nil {
		return err
	}
	last, err := t.exists(ctx, c, at)
	if err != nil {
		return err
	}
	s := newStream(ctx, t, c, at)
	defer s.Close()
	var m fold.Meaning
	err = t.folded(ctx, at, last, func(base *fold.Thread, end eventlog.Cursor) (err error) {
		m, err = base.Answers("answer-"+name, in.Resume, "")
		s.thread, s.after = base.Clone(at.Name), end
		return err
	})
	switch {
	case err != nil:
		return err
	case len(m.Unknown) > 0:
		return fault.New(fault.InputNotFound)
	case len(m.Intents) == 0:
		return fault.Newf(fault.InvalidField, "resume must contain an answer.").At("resume")
	}
	return s.give(ctx, c, m, func() (bool, error) {
		if !s.answers.settled() {
			return false, nil
		}
		for _, d := range s.answers.refused {
			f := fault.Newf(fault.Code(d.Code), "%s", d.Message).At("resume")
			return true, Detailed{f, refusal(d)}
		}
		return true, nil
	})
}
