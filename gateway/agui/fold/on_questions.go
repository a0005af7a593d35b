package fold

import (
	"encoding/json"
	"time"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Schemas of the answers to questions.
var (
	approvalSchema = json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"},"feedback":{"type":"string"}},"required":["approved"],"additionalProperties":false}`)
	planSchema     = json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"},"feedback":{"type":"string"},"tasks":{"type":"array","items":{"type":"object"}},"modified":{"type":"object"}},"required":["approved"],"additionalProperties":false}`)
)

// editSchema is the schema of an answer that may change the arguments of the call. The member has the name that AG-UI's
// description of interrupts gives it (docs.ag-ui.com/concepts/interrupts).
func editSchema(parameters json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"},"feedback":{"type":"string"},"editedArgs":` + string(parameters) +
		`},"required":["approved"],"additionalProperties":false}`)
}

// optionsOf returns the answers that an agent takes; none: any.
func optionsOf(raw json.RawMessage) (out []json.RawMessage) {
	if json.Unmarshal(raw, &out) != nil { // they have a form of the agent's own
		return nil
	}
	return out
}

// answerSchema is the schema of an answer to an agent.
func answerSchema(options json.RawMessage) json.RawMessage {
	one := "{}"
	if len(optionsOf(options)) > 0 {
		one = `{"enum":` + string(options) + `}`
	}
	return json.RawMessage(`{"type":"object","properties":{"answer":` + one + `},"required":["answer"],"additionalProperties":false}`)
}

func inputRequested(t *Thread, d event.InputRequestedData) {
	if _, known := t.Question(d.InputID); known {
		return
	}
	t.ensure()
	q := Question{Scope: d.Scope, run: d.RunID, Interrupt: wire.Interrupt{ID: d.InputID, ResponseSchema: approvalSchema}}
	if n, err := narrate.Of(t.at); err == nil {
		q.Message = n.Text
	}
	if d.TimeoutSeconds > 0 {
		q.ExpiresAt = stamp(t.at.Time.Add(time.Duration(d.TimeoutSeconds) * time.Second))
	}
	var about any
	switch d.Scope {
	case event.ScopeTool, event.ScopeClientTool:
		q.Reason, q.ToolCallID = wire.ReasonToolCall, d.CallID
		t.callShown(d.CallID, d.Tool, string(d.Arguments), "", t.by(event.Part{}))
		q.Digest = t.run.calls[d.CallID].digest // the call that was shown, whatever the question says
		about = members("tool", d.Tool, "digest", q.Digest, "description", d.Description)
		if q.editable = d.Scope == event.ScopeTool && len(d.Parameters) > 0; q.editable {
			q.ResponseSchema = editSchema(d.Parameters)
		}
		q.SubagentRunID = t.live(t.run.calls[d.CallID].sub)
	case event.ScopePlan:
		q.Reason, q.ResponseSchema = wire.ReasonConfirmation, planSchema
		about = members("plan_id", d.PlanID, "tasks", newPlan("", "", d.Steps).Tasks, "summary", d.Summary)
	case event.ScopeBudget:
		q.Reason = wire.ReasonBudget
		if about = members(); d.Budget != nil {
			about = d.Budget
		}
	case event.ScopeAgent:
		q.Reason, q.Message = wire.ReasonInputRequired, d.Summary
		q.ResponseSchema, q.options = answerSchema(d.Options), optionsOf(d.Options)
		q.SubagentRunID = t.live(t.by(d.Part))
		about = members("options", d.Options, "message_type", d.MessageType)
		if !d.ExpiresAt.IsZero() {
			q.ExpiresAt = stamp(d.ExpiresAt)
		}
		t.run.jobs.Ask(d.Job(d.RunID), d.InputID)
	default:
		q.Reason, about = wire.ReasonInputRequired, members()
	}
	q.Metadata = &wire.Metadata{Waggle: raw(about)}
	t.run.questions = append(t.run.questions, q)
	if q.Scope == event.ScopeClientTool {
		return // the call says it
	}
	t.show(q.ID, wire.ActivityQuestion, q.SubagentRunID, t.asked(q))
}

// close notes that a question is over, and begins the next stretch if the run continues with it.
func (t *Thread) close(id, segment string, change func(*Question)) {
	r := t.run
	for i := range r.questions {
		q := &r.questions[i]
		if q.ID != id || q.Over {
			continue
		}
		change(q)
		q.Over = true
		r.jobs.Answer(id, q.Decision != "" && q.Decision != event.DecisionReject)
		if r.stretch == "" && !r.moves() {
			r.deferred = append(r.deferred, *q)
			return
		}
		if r.stretch == "" {
			t.begin(segment, "", nil)
		}
		t.answerShown(*q)
		return
	}
}

func inputAnswered(t *Thread, d event.InputAnsweredData) {
	if q, known := t.Question(d.InputID); known && !q.Over && q.Scope == event.ScopeClientTool {
		m := wire.Message{ID: q.ToolCallID + "-result", Role: wire.RoleTool, ToolCallID: q.ToolCallID, Content: quote(d.Result)}
		if len(d.Files) > 0 && t.variant.files { // older clients take no parts of results
			m.Content = raw(partsOf(d.Result, nil, d.Files))
		}
		if d.Decision == event.DecisionReject {
			m.Content, m.Error = quote(first(d.Feedback, "The client did not carry the call out.")), string(fault.ToolFailed)
		}
		t.remember(m, false)
	}
	t.close(d.InputID, first(d.Segment, d.CommandID, t.run.last), func(q *Question) {
		q.Decision, q.By, q.ClientID, q.changed = d.Decision, d.By, d.ClientID, d.Arguments
		if len(d.Arguments) > 0 {
			t.history.change(q.ToolCallID, string(d.Arguments))
		}
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
