package teamwork

import (
	"maps"
	"slices"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Bounds of the history for a viewer without a position: some minutes of a team of five, which is
// longer than clients try to reconnect.
const (
	recentEvents = 10_000
	recentBytes  = 8 << 20
)

// restEvery is how many events lie between places that are kept, at least: a window has
// some 150 of them, of 30 bytes.
const restEvery = 64

// window is the part of the log that viewers without a position see. It begins at a rest, so that
// it cuts no text, tool call or question in two. The original's clients drop known events by
// position, and skip those whose beginning they have not seen.
type window struct {
	Seq   uint64            `json:"seq,omitempty"`
	Bytes uint64            `json:"bytes,omitempty"` // of the data of all events so far
	Rests []rest            `json:"rests,omitempty"` // oldest first; the first may be before the window
	Open  map[string]string `json:"open,omitempty"`  // open messages, calls and questions, with the path of their agent
}

// rest is a place in the log where nothing is open.
type rest struct {
	Seq   uint64 `json:"seq"`
	Bytes uint64 `json:"bytes"`
}

// take moves the window on to the next event of the log.
func (w *window) take(e event.Event) {
	if n := len(w.Rests); len(w.Open) == 0 && (n == 0 || w.Seq >= w.Rests[n-1].Seq+restEvery) {
		w.Rests = append(w.Rests, rest{w.Seq, w.Bytes})
	}
	w.Seq, w.Bytes = e.Sequence, w.Bytes+uint64(len(e.Data))
	for len(w.Rests) > 1 && w.beyond(w.Rests[0]) {
		w.Rests = slices.Delete(w.Rests, 0, 1)
	}
}

// beyond reports whether a place is before the window.
func (w *window) beyond(r rest) bool {
	return w.Seq-r.Seq > recentEvents || w.Bytes-r.Bytes > recentBytes
}

// note keeps the open texts, calls and questions, by an event of a member.
func (w *window) note(e event.Event) {
	var d struct {
		MessageID string `json:"message_id"`
		CallID    string `json:"call_id"`
		InputID   string `json:"input_id"`
		Scope     string `json:"scope"`
	}
	switch e.Type {
	case event.MessageStarted, event.MessageCompleted, event.MessageDiscarded, event.InputRequested, event.InputAnswered, event.InputExpired,
		event.ToolCalled, event.ToolCompleted, event.ToolFailed, event.ToolUnknown:
		if eventdata.Into(e, &d) != nil {
			return // viewers cannot show it either
		}
	}
	if d.CallID == "" {
		d.CallID = d.InputID // of a question that is about no call
	}
	switch e.Type {
	case event.MessageStarted:
		w.open("message "+d.MessageID, e.Via.Route)
	case event.MessageCompleted, event.MessageDiscarded:
		delete(w.Open, "message "+d.MessageID)
	case event.InputRequested, event.ToolCalled:
		w.open("call "+d.CallID, e.Via.Route)
	case event.InputExpired, event.ToolCompleted, event.ToolFailed, event.ToolUnknown:
		delete(w.Open, "call "+d.CallID)
	case event.InputAnswered:
		if d.Scope == event.ScopeAgent { // nothing else ends it
			delete(w.Open, "call "+d.CallID)
		}
	case event.RunCompleted, event.RunFailed, event.RunCancelled, event.MemberClosed:
		maps.DeleteFunc(w.Open, func(_, route string) bool { return route == e.Via.Route })
	}
}

func (w *window) open(what, route string) {
	if w.Open == nil {
		w.Open = map[string]string{}
	}
	w.Open[what] = route
}
