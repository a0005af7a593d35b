package index

import (
	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// spent is what the runs of a log took that are over.
type spent struct {
	MS       int64   `json:"ms,omitempty"`     // sum of their durations
	Tokens   int64   `json:"tokens,omitempty"` // input and output
	Input    int64   `json:"input,omitempty"`  // of the tokens
	Cached   int64   `json:"cached,omitempty"` // of the input: read from a provider's cache
	USD      float64 `json:"usd,omitempty"`
	Priced   bool    `json:"priced,omitempty"`   // some run has a cost
	Unpriced bool    `json:"unpriced,omitempty"` // some run has used a model without a price
}

// add counts a run. usage is nil for a run without a model call.
func (s *spent) add(ms int64, usage *event.Usage) {
	s.MS += max(ms, 0)
	if usage == nil {
		return
	}
	if n := usage.InputTokens; n != nil {
		s.Tokens += max(*n, 0)
		s.Input += max(*n, 0)
		s.Cached += max(usage.CachedTokens, 0)
	}
	if n := usage.OutputTokens; n != nil {
		s.Tokens += max(*n, 0)
	}
	switch {
	case usage.CostUSD != nil:
		s.USD, s.Priced = s.USD+max(*usage.CostUSD, 0), true
	case usage.LLMCalls > 0:
		s.Unpriced = true
	}
}

// Cost returns the cost of the runs in US dollars, nil if it is not known of all of them.
func (s spent) Cost() *float64 {
	if !s.Priced || s.Unpriced {
		return nil
	}
	return &s.USD
}

// answers notes who answers: the agent of the swarm that has a job, and the model of a call.
func (s *Summary) answers(e *eventlog.Entry) {
	var d struct {
		Worker    string `json:"worker"`
		SwarmTask string `json:"swarm_task"`
		Model     string `json:"model"`
	}
	if err := eventdata.Into(e.Event, &d); err != nil {
		return
	}
	if e.Type == event.MessageStarted {
		s.Model = d.Model
		return
	}
	s.Agent = ""
	if d.SwarmTask != "" {
		s.Agent = d.Worker
	}
}
