package conversation

import (
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/plan"
)

// Due returns the earliest time at which advance may return an event: the expiry of an open
// question, a deadline of a step, or the end of a pause between attempts. It is zero if the state
// waits for commands only. Calling advance earlier has no effect.
func (s *State) Due(now time.Time, rules Rules) time.Time {
	var due time.Time
	at := func(t time.Time) {
		if due.IsZero() || t.Before(due) {
			due = t
		}
	}
	if r := s.Active(); r != nil && r.question() != nil && r.question().expires() {
		at(r.question().Asked.Add(r.question().Timeout))
	}
	d, ok := handler{s: s, now: now, rules: rules}.current()
	if !ok {
		return due
	}
	if q := d.p.Asked; q != nil && !q.Over {
		at(q.Asked.Add(q.Timeout))
	}
	if d.p.Retry != nil {
		at(d.p.Retry.Due)
	}
	for _, t := range d.p.Steps {
		switch {
		case t.Retry != nil:
			at(t.Retry.Due)
		case t.State == plan.Running:
			at(solver{d}.deadline(t))
		}
	}
	return due
}

// Stats sums the session up.
func (s *State) Stats(now time.Time) event.Stats {
	st := event.Stats{TotalSteps: s.totals.Steps, CompletionStatus: success, Usage: s.totals.Usage()}
	if !s.Created.IsZero() {
		st.DurationSeconds = int64(max(0, now.Sub(s.Created)) / time.Second)
	}
	st.TotalMessages = s.totals.Messages
	last := s.queue.last()
	switch {
	case last == nil:
	case last.Status == Completed && (last.Outcome == "" || last.Outcome == success):
	case last.Outcome == partialSuccess, last.Plan != nil && last.Plan.count(plan.Done) > 0:
		st.CompletionStatus = "partial"
	default:
		st.CompletionStatus = failure
	}
	return st
}
