package conversation

import (
	"encoding/json"
	"maps"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation/usage"
)

// callFolds are the effects of events about calls of tools.
var callFolds = map[event.Type]effect{
	event.ToolCalled: with(
		intended,
		onJob((*Job).toolCalled, func(d event.ToolCalledData) at { return at{d.RunID, d.Part} }),
		onTotals(func(t *usage.Totals, _ event.ToolCalledData) { t.Tools++ }),
	),
	event.ToolStarted: with(onCall((*Call).started, func(d event.ToolStartedData) string { return d.CallID })),
	event.ToolCompleted: with(
		tainted(func(d event.ToolCompletedData) bool { return d.Untrusted }),
		onCall((*Call).completed, func(d event.ToolCompletedData) string { return d.CallID }),
	),
	event.ToolFailed: with(
		tainted(func(d event.ToolFailedData) bool { return d.Untrusted }),
		onCall((*Call).failed, func(d event.ToolFailedData) string { return d.CallID }),
	),
	event.ToolUnknown: with(onCall((*Call).lost, func(d event.ToolUnknownData) string { return d.CallID })),
}

// CallStatus is the state of a tool call.
type CallStatus string

// The states of a tool call. The last three are final.
const (
	CallIntended  CallStatus = "intended" // tool.called: it may not have been handed over
	CallStarted   CallStatus = "started"  // tool.started: it may have had its effect
	CallCompleted CallStatus = "completed"
	CallFailed    CallStatus = "failed"
	CallUnknown   CallStatus = "unknown"
)

// Final reports whether the call has an outcome.
func (s CallStatus) Final() bool { return s == CallCompleted || s == CallFailed || s == CallUnknown }

// Call is one tool call.
type Call struct {
	ID         string
	RunID      string
	Job        string // the job that made it
	Tool       string
	Arguments  json.RawMessage `json:"-"` // as the model wrote them: see storedCall
	Idempotent bool
	Status     CallStatus
	Attempt    int    // of the newest event about it
	Result     string // text for the model, once final

	Files []event.File `json:",omitempty"` // that it has returned, too
}

func (c *Call) started(d event.ToolStartedData) { c.become(d.Attempt, CallStarted, "") }

func (c *Call) completed(d event.ToolCompletedData) {
	c.become(d.Attempt, CallCompleted, d.Result)
	c.Files = d.Files
}

func (c *Call) failed(d event.ToolFailedData) { c.become(d.Attempt, CallFailed, d.Message) }

func (c *Call) lost(d event.ToolUnknownData) { c.become(d.Attempt, CallUnknown, d.Message) }

func (c *Call) become(attempt int, to CallStatus, result string) {
	c.Status, c.Attempt, c.Result = to, attempt, result
}

// calls holds the calls of tools of the runs that a state keeps.
type calls struct {
	byID map[string]*Call
	must map[string]bool // those that a person has to allow, by call id
}

// intended adds a call whose intent is in the log.
func intended(s *State, _ event.Event, d event.ToolCalledData) error {
	if s.Run(d.RunID) == nil && s.window.Lost.Any {
		return errForgotten
	}
	s.calls.byID[d.CallID] = &Call{
		ID: d.CallID, RunID: d.RunID, Job: d.Job(d.RunID), Tool: d.Tool, Arguments: d.Arguments,
		Idempotent: d.Idempotent, Status: CallIntended, Attempt: d.Attempt,
	}
	return nil
}

// tainted notes that the conversation holds untrusted output.
func tainted[T event.Data](untrusted func(T) bool) fold[T] {
	return func(s *State, _ event.Event, d T) error {
		s.Tainted = s.Tainted || untrusted(d)
		return nil
	}
}

// ask records which calls of a message people have to allow. Policies are those of the time at which the model asked.
func (c *calls) ask(p *Profile, r *Run, list []event.ToolCall) {
	for _, tc := range list {
		pending := event.PendingCall{
			Policy: tc.Policy, Tainted: p.Tainted, Invalid: tc.Invalid != "", Client: r.Spec.ClientTool(tc.Name) != nil,
			TeamTool: p.Agent != nil && teamTools[tc.Name], Supervised: p.Agent != nil && !p.Agent.AutoExecuteTools,
		}
		if pending.NeedsPerson() {
			c.must[tc.ID] = true
		}
	}
}

func (c *calls) unsettled(m Message) []event.ToolCall {
	var out []event.ToolCall
	for _, tc := range m.ToolCalls {
		if one := c.byID[tc.ID]; one == nil || !one.Status.Final() {
			out = append(out, tc)
		}
	}
	return out
}

// begun separates the calls that the log has from the others.
func (c *calls) begun(list []event.ToolCall) (begun, fresh []event.ToolCall) {
	for _, tc := range list {
		if c.byID[tc.ID] != nil {
			begun = append(begun, tc)
		} else {
			fresh = append(fresh, tc)
		}
	}
	return begun, fresh
}

// decided gives a call the outcome that the answer to its question has: it was refused, or the client has carried it out.
func (c *calls) decided(q *Question, d event.InputAnsweredData) {
	refused := d.Decision == event.DecisionReject
	out := &Call{ID: q.CallID, RunID: q.RunID, Job: q.RunID, Tool: q.Tool, Status: CallFailed, Attempt: q.Attempt}
	switch {
	case q.Client && refused:
		out.Result, out.Files = orElse(d.Feedback, "The client did not carry the call out."), d.Files
	case q.Client:
		out.Status, out.Result, out.Files = CallCompleted, d.Result, d.Files
	case refused && c.byID[q.CallID] == nil:
		out.Result = "denied: " + orElse(d.Feedback, "no reason was given")
	default:
		return
	}
	c.byID[q.CallID] = out
}

// forget removes the calls of a run.
func (c *calls) forget(r *Run) {
	for _, j := range r.Jobs {
		for _, m := range j.Messages {
			for _, tc := range m.ToolCalls {
				delete(c.must, tc.ID)
			}
		}
	}
	maps.DeleteFunc(c.byID, func(_ string, one *Call) bool { return one.RunID == r.ID })
}
