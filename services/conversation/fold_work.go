package conversation

import (
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// maxPartial bounds the kept part of an unfinished text, in bytes: enough to show the work of a
// cancelled task.
const maxPartial = 2000

func (s *State) turnStarted(e event.Event, d event.JobStartedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		if w.Claimed.IsZero() || w.Paused { // the time in which it waited for people does not count
			w.Claimed = e.Time
		}
		w.Attempt, w.Claim, w.Item, w.SwarmTask, w.worker, w.Paused = d.Attempt, e.ID, d.CommandID, d.SwarmTask, d.Worker, false
	})
}

func (s *State) attemptRefused(_ event.Event, d event.AttemptRefusedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) { w.Refused = max(w.Refused, d.Attempt) })
}

func (s *State) messageStarted(e event.Event, d event.MessageStartedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		w.Open = append(w.Open, d.MessageID)
		w.partial, w.said, w.begun = nil, 0, !d.Waits
		w.asked = e.Time
		s.totals.begun++
	})
}

func (s *State) messageDelta(_ event.Event, d event.MessageDeltaData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		w.said += len(d.Text)
		w.begun = w.begun || d.Begins
		if d.JobID != "" && len(w.partial) < maxPartial {
			w.partial = append(w.partial, d.Text...)
		}
	})
}

func (s *State) messageCompleted(_ event.Event, d event.MessageCompletedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		s.recovered(w)
		s.ask(s.runs[d.RunID], d.ToolCalls)
		w.closeMessage(d.MessageID)
		w.Messages = append(w.Messages, Message{ID: d.MessageID, Content: d.Content, ToolCalls: d.ToolCalls})
		w.tally.calls++
		s.totals.calls++
	})
}

func (s *State) messageDiscarded(_ event.Event, d event.MessageDiscardedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) { w.closeMessage(d.MessageID) })
}

// Silent reports whether viewers have been shown nothing of the message that is open.
func (w *Work) Silent() bool { return w == nil || !w.begun }

func (w *Work) closeMessage(id string) {
	w.Open = slices.DeleteFunc(w.Open, func(m string) bool { return m == id })
	w.partial = nil
}

func (s *State) turnFailed(e event.Event, d event.JobFailedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		if !w.Ended && w.Failure == nil {
			w.Failure = &d
			if isTransient(d.Code) {
				s.outage(w, e.Time)
			}
		}
	})
}

func (s *State) usageRecorded(_ event.Event, d event.UsageRecordedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		w.tally.record(d)
		s.totals.record(d)
	})
}

func (s *State) toolCalled(_ event.Event, d event.ToolCalledData) error {
	if s.runs[d.RunID] == nil && s.lost.Any {
		return nil
	}
	s.calls[d.CallID] = &Call{
		ID: d.CallID, RunID: d.RunID, Work: d.Job(d.RunID), Tool: d.Tool, Arguments: d.Arguments,
		Idempotent: d.Idempotent, Status: CallIntended, Attempt: d.Attempt,
	}
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		w.tally.use(d.Tool)
		s.totals.tools++
	})
}

func (s *State) toolStarted(_ event.Event, d event.ToolStartedData) error {
	return s.onCall(d.CallID, d.Attempt, CallStarted, "")
}

func (s *State) toolCompleted(_ event.Event, d event.ToolCompletedData) error {
	s.Tainted = s.Tainted || d.Untrusted
	if err := s.onCall(d.CallID, d.Attempt, CallCompleted, d.Result); err != nil || s.calls[d.CallID] == nil {
		return err
	}
	s.calls[d.CallID].Files = d.Files
	return nil
}

func (s *State) toolFailed(_ event.Event, d event.ToolFailedData) error {
	s.Tainted = s.Tainted || d.Untrusted
	return s.onCall(d.CallID, d.Attempt, CallFailed, d.Message)
}

func (s *State) toolUnknown(_ event.Event, d event.ToolUnknownData) error {
	return s.onCall(d.CallID, d.Attempt, CallUnknown, d.Message)
}

func (s *State) onCall(id string, attempt int, to CallStatus, result string) error {
	c := s.calls[id]
	if c == nil {
		return s.unknown("tool call %q was never intended", id)
	}
	c.Status, c.Attempt, c.Result = to, attempt, result
	return nil
}

// tally adds up the consumption of a job.
type tally struct {
	calls, tools  int // messages of the model, tool calls
	recorded      int // messages whose tokens are known
	priced        int // messages whose cost is known
	input, output int64
	cost          float64
	byTool        []event.ToolUse
}

func (t *tally) record(d event.UsageRecordedData) {
	t.recorded++
	t.input += d.InputTokens
	t.output += d.OutputTokens
	if d.CostUSD != nil {
		t.priced++
		t.cost += *d.CostUSD
	}
}

func (t *tally) use(tool string) {
	t.tools++
	for i := range t.byTool {
		if t.byTool[i].Name == tool {
			t.byTool[i].Calls++
			return
		}
	}
	t.byTool = append(t.byTool, event.ToolUse{Name: tool, Calls: 1})
}

func (t *tally) add(o tally) {
	t.calls, t.tools = t.calls+o.calls, t.tools+o.tools
	t.recorded, t.priced = t.recorded+o.recorded, t.priced+o.priced
	t.input, t.output, t.cost = t.input+o.input, t.output+o.output, t.cost+o.cost
}

// usage omits values that are unknown for every message.
func (t *tally) usage() event.Usage {
	u := event.Usage{LLMCalls: t.calls, ToolCalls: t.tools}
	if t.calls > 0 && t.recorded >= t.calls {
		u.InputTokens, u.OutputTokens = &t.input, &t.output
	}
	if t.calls > 0 && t.priced >= t.calls {
		u.CostUSD = &t.cost
	}
	return u
}

// totals counts for the whole session.
type totals struct {
	tally
	messages, tasks int
	begun           int // messages of the model, also those that were not finished
}

// usage counts every model call that has begun. Providers report the tokens of finished calls only,
// so the tokens are a lower bound.
func (t *totals) usage() event.Usage {
	u := t.tally.usage()
	u.LLMCalls = max(t.begun, t.calls)
	if t.calls == 0 {
		u.InputTokens, u.OutputTokens = &t.input, &t.output
	}
	return u
}
