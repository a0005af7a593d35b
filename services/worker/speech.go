package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
)

// errFull ends an answer that would not fit into an event.
var errFull = errors.New("the answer is too long")

// speech streams a message into the log: its text, and the reasoning before and between, in the order in which they come.
type speech struct {
	*attempt

	ctx       context.Context //nolint:containedctx // of the attempt, which outlives the message
	msg       string
	mute      bool // the text is nothing to show while it is written: plans are JSON
	deltas    *eventlog.Deltas
	thinks    bool // the open deltas are reasoning
	texts     int  // events so far
	reasoning int
}

// write adds a piece of the text, or of the reasoning.
func (s *speech) write(thinks bool, piece string) error {
	if s.mute && !thinks {
		return nil
	}
	if s.deltas == nil || s.thinks != thinks {
		if err := s.Close(); err != nil {
			return err
		}
		s.begin(thinks)
	}
	return s.deltas.Write(piece)
}

func (s *speech) begin(thinks bool) {
	s.what, s.thinks = event.MessageDelta, thinks
	build := s.text
	if thinks {
		s.what, build = event.ReasoningDelta, s.thought
	}
	s.deltas = s.log.Deltas(s.ctx, s.s.cfg.DeltaPause, func(_ int, text string) (event.Event, error) { return build(text) },
		func(*conversation.State) error { return s.saying(s.msg) })
}

func (s *speech) text(piece string) (event.Event, error) {
	s.texts++
	return event.New(s.log.Ref, fmt.Sprintf("%s.%d", s.msg, s.texts), source, s.s.cfg.Now(), event.MessageDeltaData{
		MessageID: s.msg, RunID: s.runID, ExecutionID: s.begun.ExecutionID, Attempt: s.number, Text: piece, Begins: s.texts == 1, Part: s.begun.Part,
	})
}

func (s *speech) thought(piece string) (event.Event, error) {
	s.reasoning++
	return event.New(s.log.Ref, fmt.Sprintf("%s.r%d", s.msg, s.reasoning), source, s.s.cfg.Now(), event.ReasoningDeltaData{
		MessageID: s.msg, RunID: s.runID, ExecutionID: s.begun.ExecutionID, Attempt: s.number, Text: piece, Part: s.begun.Part,
	})
}

// Close appends what waits and returns the first error.
func (s *speech) Close() error {
	if s.deltas == nil {
		return nil
	}
	err := s.deltas.Close()
	s.deltas = nil
	return err
}
