package index

import (
	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// endsFormat is the first format whose summaries say how runs ended.
const endsFormat = 3

// calls are the calls of tools of one run that must not be repeated, until they are over.
type calls struct {
	Run    string          `json:"run"`
	Open   map[string]bool `json:"open,omitempty"`   // by id; true: the tool has got it
	Unsure bool            `json:"unsure,omitempty"` // one of them is over, and its effect is unknown
}

// with returns the calls after an event about one of them; nil: none is left whose effect matters. The receiver may be nil.
func (c *calls) with(e *eventlog.Entry) *calls {
	var d struct {
		CallID     string `json:"call_id"`
		RunID      string `json:"run_id"`
		Idempotent bool   `json:"idempotent"`
	}
	if err := eventdata.Into(e.Event, &d); err != nil {
		return c
	}
	if c == nil || c.Run != d.RunID {
		c = &calls{Run: d.RunID}
	}
	if c.Open == nil {
		c.Open = map[string]bool{}
	}
	_, known := c.Open[d.CallID]
	switch {
	case e.Type == event.ToolCalled && !d.Idempotent && !known:
		c.Open[d.CallID] = false
	case e.Type == event.ToolStarted && known:
		c.Open[d.CallID] = true
	case e.Type == event.ToolUnknown:
		c.Unsure = true
		delete(c.Open, d.CallID)
	case e.Type == event.ToolCompleted, e.Type == event.ToolFailed:
		delete(c.Open, d.CallID)
	}
	if !c.Unsure && len(c.Open) == 0 {
		return nil
	}
	return c
}

// left reports whether the run, which is over, has left a call whose effect is unknown: one that its tool had got.
func (c *calls) left() bool {
	for _, begun := range c.Open {
		if begun {
			return true
		}
	}
	return c.Unsure
}

// endOf returns how a run ended with the event; empty if the event ends none.
func endOf(t event.Type, outcome string) string {
	switch t {
	case event.RunCompleted:
		return api.RunState(api.SessionCompleted, outcome)
	case event.RunFailed:
		return api.SessionFailed
	case event.RunCancelled:
		return api.SessionCancelled
	}
	return ""
}
