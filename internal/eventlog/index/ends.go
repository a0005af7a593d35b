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

// call follows a call of a tool.
func (s *Summary) call(e *eventlog.Entry) {
	var d struct {
		CallID     string `json:"call_id"`
		RunID      string `json:"run_id"`
		Idempotent bool   `json:"idempotent"`
	}
	if err := eventdata.Into(e.Event, &d); err != nil {
		return
	}
	c := calls{Run: d.RunID, Open: map[string]bool{}}
	if s.Calls != nil && s.Calls.Run == d.RunID {
		c = *s.Calls
	}
	_, known := c.Open[d.CallID]
	switch {
	case e.Type == event.ToolCalled && !d.Idempotent && !known:
		if c.Open == nil {
			c.Open = map[string]bool{}
		}
		c.Open[d.CallID] = false
	case e.Type == event.ToolStarted && known:
		c.Open[d.CallID] = true
	case e.Type == event.ToolUnknown:
		c.Unsure = true
		delete(c.Open, d.CallID)
	case e.Type == event.ToolCompleted, e.Type == event.ToolFailed:
		delete(c.Open, d.CallID)
	}
	if s.Calls = nil; c.Unsure || len(c.Open) > 0 {
		s.Calls = &c
	}
}

// end notes how a run ended. A call that its tool had got, and that the run left, has an unknown effect.
func (s *Summary) end(t event.Type, run, outcome string) {
	s.Ended = endOf(t, outcome)
	if s.Calls == nil || s.Calls.Run != run {
		return
	}
	unsure := s.Calls.Unsure
	for _, begun := range s.Calls.Open {
		unsure = unsure || begun
	}
	if s.Calls = nil; unsure {
		s.Ended = api.SessionUnknown
	}
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
