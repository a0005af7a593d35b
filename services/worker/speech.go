package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/worker/jsontext"
)

// errFull ends an answer that would not fit into an event.
var errFull = errors.New("the answer is too long")

// speech streams a message into the log: its text, and the reasoning before and between, in the order in which they come.
type speech struct {
	j         *job
	ctx       context.Context //nolint:containedctx // of the attempt, which outlives the message
	msg       string
	mute      bool // the text is nothing to show while it is written: plans are JSON
	open      *eventlog.Deltas
	thinks    bool // the open deltas are reasoning
	texts     int  // events so far
	reasoning int
}

// write adds a piece of the text, or of the reasoning.
func (s *speech) write(thinks bool, piece string) error {
	if s.mute && !thinks {
		return nil
	}
	if s.open == nil || s.thinks != thinks {
		if err := s.Close(); err != nil {
			return err
		}
		s.begin(thinks)
	}
	return s.open.Write(piece)
}

func (s *speech) begin(thinks bool) {
	j := s.j
	j.what, s.thinks = event.MessageDelta, thinks
	build := s.text
	if thinks {
		j.what, build = event.ReasoningDelta, s.thought
	}
	s.open = j.log.Deltas(s.ctx, j.s.cfg.DeltaPause, func(_ int, text string) (event.Event, error) { return build(text) },
		func(*conversation.State) error { return j.saying(s.msg) })
}

func (s *speech) text(piece string) (event.Event, error) {
	j := s.j
	s.texts++
	return event.New(j.log.Ref, fmt.Sprintf("%s.%d", s.msg, s.texts), source, j.s.cfg.Now(), event.MessageDeltaData{
		MessageID: s.msg, RunID: j.runID, ExecutionID: j.begun.ExecutionID, Attempt: j.attempt, Text: piece, Begins: s.texts == 1, Part: j.begun.Part,
	})
}

func (s *speech) thought(piece string) (event.Event, error) {
	j := s.j
	s.reasoning++
	return event.New(j.log.Ref, fmt.Sprintf("%s.r%d", s.msg, s.reasoning), source, j.s.cfg.Now(), event.ReasoningDeltaData{
		MessageID: s.msg, RunID: j.runID, ExecutionID: j.begun.ExecutionID, Attempt: j.attempt, Text: piece, Part: j.begun.Part,
	})
}

// Close appends what waits and returns the first error.
func (s *speech) Close() error {
	if s.open == nil {
		return nil
	}
	err := s.open.Close()
	s.open = nil
	return err
}

// speak streams the model's text and reasoning into the log as deltas. Both ends stop each other: a lost fence ends the
// model's request, a failing model ends the stream. A text that would not fit into an event is cut there, like one that has
// used up its tokens, and reasoning that would not fit is no longer shown. The request has a context of its own, which may
// end before that of the attempt.
func (j *job) speak(ctx, talk context.Context, msg string, req model.Request) (model.Reply, error) {
	s := &speech{j: j, ctx: ctx, msg: msg, mute: j.begun.Part.Stage == event.StagePlanning}
	var said strings.Builder
	textRoom, thoughtRoom := maxText, maxText
	heard, ended := j.s.metrics.request(j.model())
	reply, err := j.s.deps.Model.Generate(talk, req, model.Listener{
		Text: func(text string) error {
			heard()
			part, cut := jsontext.Fit(text, textRoom)
			textRoom -= jsontext.Len(part)
			said.WriteString(part)
			if err := s.write(false, part); err != nil {
				return err
			}
			if cut {
				return errFull
			}
			return nil
		},
		Reasoning: func(text string) error {
			part, _ := jsontext.Fit(text, thoughtRoom)
			if thoughtRoom -= jsontext.Len(part); part == "" {
				return nil
			}
			return s.write(true, part)
		},
	})
	ended(err)
	if flushed := s.Close(); flushed != nil {
		return reply, flushed // the fence or the bus: it comes before whatever the model made of it
	}
	if errors.Is(err, errFull) {
		return model.Reply{Text: said.String(), StopReason: model.StopLength, Model: j.model()}, nil
	}
	return reply, err
}
