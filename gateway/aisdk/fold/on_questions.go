package fold

import (
	"encoding/json"
	"slices"

	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Names of the tool calls that stand for questions which are about no call.
const (
	ToolPlan   = "confirm_plan" // takes an approval
	ToolBudget = "raise_budget" // takes an approval
	ToolAnswer = "answer"       // takes an output: an agent of the swarm asks
)

func inputRequested(t *Chat, d event.InputRequestedData) {
	if t.run.question(d.InputID) >= 0 {
		return
	}
	t.ensure()
	q := question{id: d.InputID, scope: d.Scope, call: d.InputID, stretch: t.run.stretch}
	text := ""
	if n, err := narrate.Of(t.at); err == nil {
		text = n.Text
	}
	switch d.Scope {
	case event.ScopeTool, event.ScopeClientTool:
		q.call = d.CallID
		t.called(d.CallID, d.Tool, d.Arguments)
	case event.ScopePlan:
		t.called(q.id, ToolPlan, raw(planOf(d.PlanID, d.Summary, d.Steps)))
	case event.ScopeBudget:
		t.called(q.id, ToolBudget, raw(d.Budget))
	case event.ScopeAgent:
		q.options = d.Options
		t.called(q.id, ToolAnswer, raw(Ask{Question: d.Summary, Agent: d.AgentName, Options: d.Options}))
		t.run.jobs.Ask(d.Job(d.RunID), d.InputID)
	default:
		t.called(q.id, ToolAnswer, raw(Ask{Question: text}))
	}
	t.run.questions = append(t.run.questions, q)
	if d.Scope != event.ScopeClientTool && d.Scope != event.ScopeAgent {
		t.emit(Chunk{Type: ToolApprovalRequest, ToolCallID: q.call, ApprovalID: q.id, Reason: text})
	}
}

// Ask is the input of the tool call that stands for the question of an agent.
type Ask struct {
	Question string          `json:"question"`
	Agent    string          `json:"agent,omitempty"`
	Options  json.RawMessage `json:"options,omitempty"` // the answers that it takes; absent: any
}

// close notes that a question is over. The run may continue with it.
func (t *Chat) close(i int, allowed bool) {
	q := &t.run.questions[i]
	q.over, q.allowed = true, allowed
	t.run.jobs.Answer(q.id, allowed)
}

func inputAnswered(t *Chat, d event.InputAnsweredData) {
	r := t.run
	i := r.question(d.InputID)
	if i < 0 || r.questions[i].over {
		return
	}
	allowed := d.Decision != event.DecisionReject
	t.close(i, allowed)
	q := r.questions[i]
	t.ensure()
	switch {
	case q.scope == event.ScopeClientTool && allowed:
		t.result(q.call, value(d.Result))
	case q.scope == event.ScopeClientTool:
		t.failed(q.call, first(d.Feedback, "The client did not carry the call out."))
	case q.scope == event.ScopeTool && allowed:
		t.allowed(q.call, d.Arguments)
	case q.scope == event.ScopeAgent && len(d.Message) > 0:
		t.result(q.call, d.Message)
	case !allowed:
		t.denied(q.call)
	default:
		t.result(q.call, raw(map[string]string{"decision": d.Decision}))
	}
	if q.scope == event.ScopePlan && allowed {
		r.solving = true
		if len(d.Steps) > 0 && r.plan != nil {
			t.planned(planOf(r.plan.PlanID, r.plan.Summary, d.Steps))
		}
	}
}

// allowed shows that a call is at work: its question is not open any more. A person may have changed its arguments. Clients look for
// the call in the newest step.
func (t *Chat) allowed(callID string, changed []byte) {
	parts := t.run.message.Parts[t.run.message.step():]
	i := slices.IndexFunc(parts, func(p Part) bool { return p.ToolCallID == callID })
	if i < 0 || t.run.calls[callID].over {
		return
	}
	arguments := []byte(parts[i].Input)
	if len(changed) > 0 {
		arguments = changed
	}
	t.input(callID, arguments)
}

func inputExpired(t *Chat, d event.InputExpiredData) {
	i := t.run.question(d.InputID)
	if i < 0 || t.run.questions[i].over {
		return
	}
	t.close(i, false)
	t.failed(t.run.questions[i].call, "The question was not answered in time.")
}
