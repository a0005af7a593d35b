package agent

import (
	"context"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
)

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
	ids := make([]string, len(data))
	for i := range ids {
		ids[i] = t.s.cfg.NewID()
	}
	return t.log.Put(ctx, ids, func(_ *conversation.State, left []string) ([]event.Event, error) {
		rest := data[len(data)-len(left):]
		t.what = rest[0].EventType()
		if err := t.held(); err != nil {
			return nil, err
		}
		if !t.open(rest) {
			return nil, errEnded
		}
		return t.events(left, rest...)
	})
}

// open reports whether the messages that the events close are still open. If one is not,
// somebody else is ending the unit: that is said in two events, the first of which closes
// what is half said.
func (t *turn) open(list []event.Data) bool {
	for _, data := range list {
		switch d := data.(type) {
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

// events returns the events with the ids.
func (t *turn) events(ids []string, list ...event.Data) ([]event.Event, error) {
	out := make([]event.Event, 0, len(list))
	for i, data := range list {
		e, err := event.New(t.log.Ref, ids[i], source, t.s.cfg.Now(), data)
		if err != nil {
			return nil, err
		}
		e.TraceParent = t.trace
		out = append(out, e)
	}
	return out, nil
}
