package agui

import (
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect/narrate"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Schemas of the answers to questions.
var (
	approvalSchema = json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"},"feedback":{"type":"string"}},"required":["approved"]}`)
	planSchema     = json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"},"feedback":{"type":"string"},"tasks":{"type":"array","items":{"type":"object"}},"modified":{"type":"object"}},"required":["approved"]}`)
)

func inputRequested(t *Thread, d event.InputRequestedData) {
	if _, known := t.Question(d.InputID); known {
		return
	}
	t.ensure()
	q := Question{Scope: d.Scope, Digest: d.Digest, Interrupt: wire.Interrupt{ID: d.InputID, ResponseSchema: approvalSchema}}
	if n, err := narrate.Of(t.at); err == nil {
		q.Message = n.Text
	}
	if d.TimeoutSeconds > 0 {
		q.ExpiresAt = stamp(t.at.Time.Add(time.Duration(d.TimeoutSeconds) * time.Second))
	}
	about := map[string]any{}
	switch d.Scope {
	case event.ScopeTool:
		q.Reason, q.ToolCallID = wire.ReasonToolCall, d.CallID
		about["tool"], about["digest"], about["description"] = d.Tool, d.Digest, d.Description
		t.callShown(d.CallID, d.Tool, string(d.Arguments), "", "")
		q.SubagentRunID = t.live(t.run.calls[d.CallID].sub)
	case event.ScopePlan:
		q.Reason, q.ResponseSchema = wire.ReasonConfirmation, planSchema
		about["planId"], about["summary"], about["tasks"] = d.PlanID, d.Summary, d.Steps
	case event.ScopeBudget:
		q.Reason = wire.ReasonBudget
		about["budget"] = d.Budget
	default:
		q.Reason = wire.ReasonInputRequired
	}
	q.Metadata = &wire.Metadata{Waggle: raw(about)}
	t.run.questions = append(t.run.questions, q)
	t.show(q.ID, wire.ActivityQuestion, q.SubagentRunID, t.asked(q))
}

// asked is the content of the activity of a question.
func (t *Thread) asked(q Question) any {
	q.SubagentRunID = t.owner(q.SubagentRunID)
	return struct {
		wire.Interrupt
		Status   string `json:"status"` // open, answered, expired
		Decision string `json:"decision,omitempty"`
		By       string `json:"by,omitempty"`
		ClientID string `json:"clientId,omitempty"`
	}{q.Interrupt, q.status(), q.Decision, q.By, q.ClientID}
}

func (q Question) status() string {
	switch {
	case !q.Over:
		return "open"
	case q.Decision == "":
		return "expired"
	}
	return "answered"
}

// close notes that a question is over, and begins the next stretch if the run goes on with it.
func (t *Thread) close(id, segment string, change func(*Question)) {
	r := t.run
	for i := range r.questions {
		q := &r.questions[i]
		if q.ID != id || q.Over {
			continue
		}
		change(q)
		q.Over = true
		r.answered(id, q.Decision != "" && q.Decision != event.DecisionReject)
		if r.stretch == "" && !r.moves() {
			r.deferred = append(r.deferred, deferred{of: *q})
			return
		}
		if r.stretch == "" {
			t.begin(segment, "", nil)
		}
		t.answerShown(*q)
		return
	}
}

// answerShown shows what became of a question.
func (t *Thread) answerShown(q Question) {
	t.change(q.ID, []wire.Operation{
		{Op: "replace", Path: "/status", Value: q.status()}, {Op: "add", Path: "/decision", Value: q.Decision},
		{Op: "add", Path: "/by", Value: q.By}, {Op: "add", Path: "/clientId", Value: q.ClientID},
	}, t.asked(q))
	t.custom(wire.CustomAnswered, map[string]string{"interruptId": q.ID, "decision": q.Decision, "by": q.By, "clientId": q.ClientID})
}

func inputAnswered(t *Thread, d event.InputAnsweredData) {
	t.close(d.InputID, first(d.Segment, d.CommandID, t.run.last), func(q *Question) {
		q.Decision, q.By, q.ClientID = d.Decision, d.By, d.ClientID
		if q.Scope == event.ScopePlan && d.Decision != event.DecisionReject {
			t.run.solving = true
		}
	})
	if d.Decision == event.DecisionModify && len(d.Steps) > 0 && t.run.plan != nil {
		t.planned(newPlan(t.run.plan.PlanID, t.run.plan.Summary, d.Steps))
	}
	if q, _ := t.Question(d.InputID); q.Scope == event.ScopeTool && d.Decision == event.DecisionReject {
		t.result(q.ToolCallID, "denied: "+first(d.Feedback, "no reason was given"), "DENIED")
	}
}

func inputExpired(t *Thread, d event.InputExpiredData) {
	t.close(d.InputID, t.run.last, func(*Question) {})
}
