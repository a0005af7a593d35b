package agent

import (
	"context"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
)

// unsent is an event that is to be appended.
type unsent struct {
	id   string
	data event.Data
}

// current returns the unit of work as the log has it now: nil if the session has been
// restored to a state without it.
func (t *turn) current() *conversation.Work { return t.state.Work(t.unit) }

// over reports whether a unit needs no worker any more.
func over(w *conversation.Work) bool { return w == nil || w.Ended || w.Failure != nil }

// held reports whether this attempt may still write: errEnded once the unit has
// ended, errFenced once another attempt has claimed it.
func (t *turn) held() error {
	w := t.current()
	switch {
	case t.broken != nil:
		return t.broken
	case over(w):
		return errEnded
	case w.Claim != t.claim:
		return errFenced
	}
	return nil
}

// append writes events under the fence: each is appended only while this attempt
// holds the run, which is checked again whenever somebody else's event turns up.
func (t *turn) append(ctx context.Context, data ...event.Data) error {
	t.unsent = t.unsent[:0]
	for _, d := range data {
		t.unsent = append(t.unsent, unsent{t.s.cfg.NewID(), d})
	}
	return t.writer.Append(ctx, func() ([]event.Event, error) {
		if len(t.unsent) == 0 {
			return nil, nil
		}
		t.what = t.unsent[0].data.EventType()
		if err := t.held(); err != nil {
			return nil, err
		}
		if !t.open(t.unsent) {
			return nil, errEnded
		}
		return t.events(t.unsent...)
	})
}

// open reports whether the messages that the events close are still open. If one is not,
// somebody else is ending the unit: that is said in two events, the first of which closes
// what is half said.
func (t *turn) open(list []unsent) bool {
	for _, u := range list {
		switch d := u.data.(type) {
		case event.MessageCompletedData:
			if !slices.Contains(t.current().Open, d.MessageID) {
				return false
			}
		case event.MessageDiscardedData:
			if !slices.Contains(t.current().Open, d.MessageID) {
				return false
			}
		}
	}
	return true
}

// saying is held for the text of a message, which nothing may follow once it is closed.
func (t *turn) saying(msg string) error {
	err := t.held()
	if err == nil && !slices.Contains(t.current().Open, msg) {
		return errEnded
	}
	return err
}

func (t *turn) events(list ...unsent) ([]event.Event, error) {
	out := make([]event.Event, 0, len(list))
	for _, u := range list {
		e, err := event.New(t.log, u.id, source, t.s.cfg.Now(), u.data)
		if err != nil {
			return nil, err
		}
		e.TraceParent = t.trace
		out = append(out, e)
	}
	return out, nil
}
