package snapshot

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Cut looks for an event of a conversation that nothing before it matters for: it begins a run, all earlier runs are over, and
// no later event is about one of them. A fold from there shows the end of what a fold from the beginning shows. It takes
// the events from the last one backwards.
type Cut struct {
	Found uint64 // the earliest such event so far; 0 = none

	open    map[string]bool // runs of later events whose beginning has not come
	started map[string]bool // runs that have begun to work: those that were there before them are over
}

// Take takes the event before the ones so far.
func (c *Cut) Take(e event.Event) {
	var d struct {
		RunID string `json:"run_id"`
	}
	if json.Unmarshal(e.Data, &d) != nil || d.RunID == "" {
		return
	}
	if c.open == nil {
		c.open, c.started = map[string]bool{}, map[string]bool{}
	}
	if e.Type == event.RunStarted {
		c.started[d.RunID] = true
	}
	if e.Type != event.MessageReceived {
		c.open[d.RunID] = true
		return
	}
	if delete(c.open, d.RunID); len(c.open) == 0 && c.started[d.RunID] {
		c.Found = e.Sequence
	}
}
