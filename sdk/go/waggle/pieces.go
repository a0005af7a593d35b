package waggle

import (
	"context"
	"iter"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Piece is the next part of an answer.
type Piece struct {
	Text      string
	Restarted bool // the answer begins anew with this piece, because another worker took over
}

// Deltas returns the pieces of the answer as they come. It ends with the run; Result tells how the run ended.
func (r *Run) Deltas(ctx context.Context) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		var a answering
		for e, err := range r.Events(ctx) {
			before := a.text
			if err == nil {
				err = a.take(e)
			}
			if err != nil {
				yield(Piece{}, err)
				return
			}
			rest, is := strings.CutPrefix(a.text, before)
			if (rest != "" || !is) && !yield(Piece{Text: rest, Restarted: !is}, nil) {
				return
			}
		}
	}
}

// answering is the answer of a run so far.
type answering struct{ message, text string }

// take adds an event of the run.
func (a *answering) take(e event.Event) error {
	switch e.Type {
	case event.MessageDelta:
		d, err := event.As[event.MessageDeltaData](e)
		if err != nil || !ofAnswer(d.Stage) {
			return err
		}
		if d.MessageID != a.message {
			a.text = ""
		}
		a.message, a.text = d.MessageID, a.text+d.Text
	case event.MessageCompleted:
		d, err := event.As[event.MessageCompletedData](e)
		if err != nil || !ofAnswer(d.Stage) || d.Content == "" {
			return err
		}
		a.message, a.text = d.MessageID, d.Content
	case event.MessageDiscarded:
		d, err := event.As[event.MessageDiscardedData](e)
		if err != nil || d.MessageID != a.message {
			return err
		}
		a.text = ""
	case event.RunCompleted:
		d, err := event.As[event.RunCompletedData](e)
		if err != nil {
			return err
		}
		a.text = d.Content
	}
	return nil
}

// ofAnswer reports whether the messages of a stage of a run are its answer: those of a chat, and of the aggregation of a plan.
func ofAnswer(stage string) bool { return stage == "" || stage == event.StageAggregation }
