package conversation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/plan"
)

// maxRaw bounds the quotation of an invalid plan, in bytes.
const maxRaw = 2000

// planner decides on the plan of a run, up to its confirmation.
type planner struct{ director }

func (d planner) plan() []decision.Fact {
	p := d.p
	switch {
	case p.Dropped != "":
		return []decision.Fact{d.drop()}
	case p.Planned && d.confirms():
		return []decision.Fact{d.ask()}
	case p.Planned:
		return solver(d).solve()
	case p.Retry != nil:
		if d.now.Before(p.Retry.Due) {
			return nil
		}
		return []decision.Fact{d.startPlan(p.Question)}
	case len(p.Invalid) > d.rules.Replans:
		return []decision.Fact{d.runFailed(fault.Lookup(fault.PlanFailed), "", "")}
	case p.Job == nil || p.Job.Ended:
		return []decision.Fact{d.startPlan(p.Question)}
	case p.Job.Failure != nil:
		return d.planJobFailed(p.Job)
	}
	if m, ok := p.Job.final(); ok {
		return []decision.Fact{d.judge(p.Job, m)}
	}
	return nil
}

func (d planner) startPlan(question string) decision.Fact {
	n := d.p.Plans + 1
	work := fmt.Sprintf("%s.plan.%d", d.r.ID, n)
	return decision.Fact{ID: work + ".started", Data: event.PlanStartedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, PlanID: fmt.Sprintf("plan_%s_%d", short(d.r.ID), n),
		Number: n, MaxTries: d.p.Plans + d.triesLeft(), Question: question, Context: rawOf(d.p.Context),
		Part: event.Part{JobID: work, Stage: event.StagePlanning},
	}}
}

// judge parses the text of the planner into plan.completed, or into plan.invalid with the reason.
func (d planner) judge(j *Job, m Message) decision.Fact {
	made, err := plan.Coerce([]byte(m.Content))
	if err != nil {
		recovery := "retry"
		if len(d.p.Invalid) >= d.rules.Replans {
			recovery = "none"
		}
		return decision.Fact{ID: j.ID + ".invalid", Data: event.PlanInvalidData{
			RunID: d.r.ID, ExecutionID: d.r.ExecutionID, PlanID: d.p.PlanID, Code: string(fault.PlanInvalid),
			Message: fault.From(err, "").Public(), Raw: clip(m.Content, maxRaw), Recovery: recovery, Part: j.Part,
		}}
	}
	return decision.Fact{ID: j.ID + ".completed", Data: event.PlanCompletedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, PlanID: d.p.PlanID, Steps: made.Tasks,
		Summary: made.Summary, Reasoning: made.Reasoning, Usage: j.Tally.Usage(), DurationMS: since(d.now, j.Started), Part: j.Part,
	}}
}

// planJobFailed schedules another try, or cancels the plan.
func (d planner) planJobFailed(j *Job) []decision.Fact {
	if retry, ok := d.retry(j, d.p.Retries+1, d.rules.Tries); ok {
		return append(discards(j), retry)
	}
	return append(discards(j), d.planCancelled(j.ID, reasonError, "", ""))
}

// drop ends a run whose plan will not be carried out, one event at a time.
func (d planner) drop() decision.Fact {
	p := d.p
	switch {
	case p.Dropped == reasonError:
		f := p.Job.Failure
		return d.runFailed(fault.Lookup(fault.Code(f.Code)), f.Message, "")
	case p.Dropped == timedOut && !p.Asked.Expired:
		q := p.Asked
		return decision.Fact{ID: q.ID + ".expired", Data: event.InputExpiredData{
			InputID: q.ID, RunID: d.r.ID, ExecutionID: d.r.ExecutionID,
			TimeoutSeconds: int(q.Timeout / time.Second), ElapsedMS: since(d.now, q.Asked),
		}}
	case p.Dropped == timedOut:
		return d.runCompleted(timedOut, "The plan was not confirmed in time, and nothing was done.", "")
	case p.Asked != nil && p.Asked.rejected():
		text := "The plan was rejected, and nothing was done."
		if why := p.Asked.Answered.Feedback; why != "" {
			text += " Reason given: " + why
		}
		return d.runCompleted(rejected, text, "")
	}
	return d.runCompleted(cancelled, "The plan was cancelled, and nothing was done.", "")
}

func (d planner) ask() decision.Fact {
	input := fmt.Sprintf("plan_confirm_%s_%d", short(d.r.ID), d.p.Plans)
	return decision.Fact{ID: fmt.Sprintf("%s.requested.%d", input, d.s.Seq), Data: event.InputRequestedData{
		InputID: input, RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Scope: "plan", PlanID: d.p.PlanID,
		Steps: d.p.list(), Summary: d.p.Summary, TimeoutSeconds: int(d.rules.ConfirmTimeout / time.Second),
	}}
}

func (d planner) confirm() []decision.Fact {
	q := d.p.Asked
	switch {
	case d.p.Dropped != "":
		return []decision.Fact{d.drop()}
	case !d.p.Planned: // another plan was requested
		return d.plan()
	case q.rejected():
		return []decision.Fact{d.planCancelled(q.ID, userRequest, q.Answered.By, q.Answered.Feedback)}
	case q.Answered != nil:
		return solver(d).solve()
	case q.Over:
		return []decision.Fact{d.ask()}
	case d.now.Before(q.Asked.Add(q.Timeout)):
		return nil
	}
	return []decision.Fact{d.planCancelled(q.ID, timedOut, "", "")}
}

func (d planner) confirms() bool {
	switch {
	case d.r.Spec.Mode != event.ModePlan:
		return false
	case d.r.Plan.Asked != nil && d.r.Plan.Asked.Answered != nil && d.r.Plan.Asked.PlanID == d.r.Plan.PlanID:
		return false
	case d.r.Spec.ConfirmPlan != nil:
		return *d.r.Spec.ConfirmPlan
	case d.s.Preferences.ConfirmPlan != nil:
		return *d.s.Preferences.ConfirmPlan
	}
	return d.rules.ConfirmPlan
}

// planCancelled ends a plan that is made or being made. by is who asked for it.
func (d planner) planCancelled(eventID, reason, by, feedback string) decision.Fact {
	data := event.PlanCancelledData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, PlanID: d.p.PlanID, Reason: reason, By: by, Feedback: feedback,
		Steps: d.p.list(), DurationMS: since(d.now, d.p.PlanStarted),
	}
	if d.p.Job != nil {
		data.Part = d.p.Job.Part
	}
	return decision.Fact{ID: eventID + ".plan-cancelled", Data: data}
}

// replan drops the plan that is made or being made for another one.
func (d planner) replan(c command.Command, question string) (decision.Decision, error) {
	if !d.s.known.has(c.ID + ".plan-cancelled") {
		var list []decision.Fact
		if d.p.Job != nil {
			list = discards(d.p.Job)
		}
		return decision.Decision{Facts: append(list, d.planCancelled(c.ID, reasonReplan, c.Principal, "")), Direct: planningAgain(c)}, nil
	}
	return decision.Of(d.startPlan(question)), nil
}

// betweenPlans reports whether one plan was dropped for another that is not begun.
func (d planner) betweenPlans() bool {
	p := d.p
	return (p.Phase == Planning || p.Phase == Confirming) && p.Dropped == "" && !p.Planned && p.Retry == nil &&
		(p.Job == nil || p.Job.Ended) && len(p.Invalid) == 0
}

func (d planner) answer(c command.Command, a command.AnswerQuestion, q *Question) decision.Fact {
	data := event.InputAnsweredData{
		InputID: q.ID, RunID: d.r.ID, ExecutionID: d.r.ExecutionID, CommandID: c.ID, Decision: event.DecisionApprove,
		Feedback: a.Feedback, By: c.Principal, ClientID: a.ClientID, Segment: a.Segment, ElapsedMS: since(d.now, q.Asked),
		Proof: c.Proof(),
	}
	if !a.Approved {
		data.Decision = event.DecisionReject
		return decision.Fact{ID: c.ID + ".answered", Data: data}
	}
	tasks, err := d.edited(a)
	if err != nil {
		return decision.Fact{ID: c.ID + ".invalid", Data: event.PlanInvalidData{
			RunID: d.r.ID, ExecutionID: d.r.ExecutionID, PlanID: d.p.PlanID, InputID: q.ID, By: c.Principal,
			Code: string(fault.PlanInvalid), Message: fault.From(err, "").Public(),
			Raw: clip(string(append(bytes.Clone(a.Steps), a.Modified...)), maxRaw), Recovery: "manual_input",
		}}
	}
	if tasks != nil {
		data.Decision, data.Steps = event.DecisionModify, tasks
	}
	return decision.Fact{ID: c.ID + ".answered", Data: data}
}

// edited returns the steps that the answer asks for, nil if it changes none.
func (d planner) edited(a command.AnswerQuestion) ([]event.Step, error) {
	switch {
	case given(a.Steps):
		tasks, err := plan.CoerceTasks(a.Steps)
		if err != nil || same(tasks, d.p.list()) {
			return nil, err
		}
		return tasks, nil
	case given(a.Modified):
		return plan.Override(d.p.list(), a.Modified)
	}
	return nil, nil
}

// same reports whether both lists are equal. Clients send the list back also when they have not
// changed it.
func same(a, b []event.Step) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
