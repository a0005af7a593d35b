package conversation

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// control decides on the commands of people about plans and their steps.
type control struct{ handler }

func (h control) cancelStep() (decision.Decision, error) {
	var ref command.StepRef
	if err := h.c.Decode(&ref); err != nil {
		return decision.Decision{}, err
	}
	eventID := h.c.ID + ".cancelled." + ref.StepID
	if h.s.known.has(eventID) {
		return h.wasDone(ref.StepID)
	}
	d, ok := h.current()
	if !ok || !d.p.Planned || d.p.Phase != Solving || d.p.Step(ref.StepID) == nil {
		return h.notDone(ref.StepID, h.lacks(ref), "No such task is being solved.")
	}
	if ref.RunID != "" && ref.RunID != d.r.ID {
		return h.notDone(ref.StepID, h.lacks(ref), otherRun)
	}
	t := d.p.Step(ref.StepID)
	if t.Final() {
		return h.notDone(ref.StepID, h.lacks(ref), "The task already has a result.")
	}
	return decision.Decision{Facts: solver{d}.endStep(t, eventID, h.c.Principal, stops), Direct: done(h.c.Verb, ref.StepID, true, "Done.")}, nil
}

// restartStep gives a step, and the steps that depend on it, another attempt. After the end of a run, a new run repairs its
// result.
func (h control) restartStep() (decision.Decision, error) {
	var ref command.StepRef
	if err := h.c.Decode(&ref); err != nil {
		return decision.Decision{}, err
	}
	if h.s.known.has(h.c.ID + ".restarted." + ref.StepID) {
		return h.wasDone(ref.StepID)
	}
	d, on := h.current()
	switch {
	case on && ref.RunID != "" && ref.RunID != d.r.ID:
		return h.notDone(ref.StepID, h.lacks(ref), otherRun)
	case on && d.p.Planned && d.p.Step(ref.StepID) != nil && (d.p.Phase == Solving || d.p.Phase == Aggregating) && !d.p.Combined && d.p.Status == "":
		return decision.Decision{Facts: solver{d}.restart(h.c, ref), Direct: done(h.c.Verb, ref.StepID, true, "Done.")}, nil
	case h.s.Active() != nil:
		return h.notDone(ref.StepID, h.lacks(ref), "The active run has no such task, or can no longer go back.")
	}
	return h.repairStep(ref)
}

// repairStep restarts a step of the last run, which is over, in a new run.
func (h control) repairStep(ref command.StepRef) (decision.Decision, error) {
	old := h.lastPlanned(ref.StepID)
	if old == nil || h.s.Closed {
		return h.notDone(ref.StepID, h.lacks(ref), "This task does not exist. Check its id.")
	}
	if ref.RunID != "" && ref.RunID != old.ID {
		return h.notDone(ref.StepID, h.lacks(ref), otherRun)
	}
	begun := event.RunStartedData{
		RunID: RunID(h.c.ID), ExecutionID: h.s.queue.executionID(h.now), MessageID: h.c.ID, Content: old.Content, Mode: event.ModeSteps, Repairs: old.ID,
		Budget: h.rules.budget(old.Spec), MaxConcurrent: h.rules.concurrent(old.Spec),
	}
	r := h.s.repair(begun)
	r.ExecutionID, r.Status = begun.ExecutionID, Running
	d := h.director(r)
	list := append([]decision.Fact{{ID: r.ID + ".started", Data: begun}}, solver{d}.restart(h.c, ref)...)
	return decision.Decision{Facts: list, Direct: done(h.c.Verb, ref.StepID, true, "Done.")}, nil
}

func (h control) cancelPlan() (decision.Decision, error) {
	eventID := h.c.ID
	if h.s.known.has(eventID + ".plan-cancelled") {
		return h.wasDone("")
	}
	d, ok := h.current()
	if !ok || (d.p.Phase != Planning && d.p.Phase != Confirming) || d.p.Dropped != "" {
		return h.notDone("", fault.RunOver, "No plan is in progress.")
	}
	var c command.CancelRun
	if err := h.c.Decode(&c); err != nil {
		return decision.Decision{}, err
	}
	if c.Reason == userRequest { // protocols say so that have no words of the person
		c.Reason = ""
	}
	var list []decision.Fact
	if d.p.Job != nil {
		list = discards(d.p.Job)
	}
	list = append(list, planner{d}.planCancelled(eventID, userRequest, h.c.Principal, c.Reason))
	return decision.Decision{Facts: list, Direct: done(h.c.Verb, "", true, "Done.")}, nil
}

// lacks returns the code of the reason why a step cannot be changed: its run or the step does not exist, or the run is over.
func (h control) lacks(ref command.StepRef) fault.Code {
	r := h.s.Active()
	switch {
	case ref.RunID == "" && r == nil:
		r = h.lastPlanned(ref.StepID)
	case ref.RunID != "" && h.s.window.Planned != nil && h.s.window.Planned.ID == ref.RunID:
		r = h.s.window.Planned
	case ref.RunID != "":
		if r = h.s.Run(ref.RunID); r == nil {
			return fault.RunNotFound
		}
	}
	if r == nil || r.Plan == nil || r.Plan.Step(ref.StepID) == nil {
		return fault.TaskNotFound
	}
	return fault.RunOver
}

// notDone reports that the command had no effect, with the code of the reason, and returns the due events.
func (h control) notDone(taskID string, code fault.Code, why string) (decision.Decision, error) {
	n := done(h.c.Verb, taskID, false, why)
	n.Error = string(code)
	return decision.Decision{Facts: h.advance(), Direct: n}, nil
}

func (h control) wasDone(taskID string) (decision.Decision, error) {
	return decision.Decision{Facts: h.advance(), Direct: done(h.c.Verb, taskID, true, "Done.")}, nil
}

func (h control) replan() (decision.Decision, error) {
	var d command.ReplanRun
	if err := h.c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	dir, on := h.current()
	known := h.s.known.heard(h.c.ID)
	switch {
	case known, h.s.known.has(h.c.ID+".plan-cancelled") && (!on || !planner{dir}.betweenPlans()):
		return h.replanned(d, known)
	case on && (dir.p.Phase == Planning || dir.p.Phase == Confirming) && dir.p.Dropped == "":
		return planner{dir}.replan(h.c, orElse(d.Question, dir.p.Question))
	case h.s.Active() != nil:
		return h.notDone("", fault.RunOver, "The plan is already running.")
	}
	if d.Question == "" {
		d.Question = h.lastQuestion()
	}
	if d.Question == "" {
		return h.notDone("", fault.InvalidField, "A plan needs a request. Send one.")
	}
	return h.planAgain(d)
}

// replanned answers a replan that was carried out before.
func (h control) replanned(d command.ReplanRun, known bool) (decision.Decision, error) {
	if h.s.known.wasRefused(h.c.ID) {
		return intake(h).receivedAgain(command.UserMessage{Content: d.Question, RunSpec: d.RunSpec})
	}
	got, err := h.goOn()
	got.Direct = planningAgain(h.c)
	if known {
		got.Direct = planningAnew(h.c)
	}
	return got, err
}

// planAgain starts a run for the question, as if it had been sent as a message.
func (h control) planAgain(d command.ReplanRun) (decision.Decision, error) {
	d.Mode = event.ModePlan
	data, err := json.Marshal(command.UserMessage{Content: d.Question, RunSpec: d.RunSpec})
	if err != nil {
		return decision.Decision{}, fmt.Errorf("encode %s: %w", command.SendMessage, err)
	}
	h.c.Data = data
	got, err := intake(h).receive()
	got.Direct = planningAnew(h.c)
	return got, err
}

// otherRun is the notice about a step of a run that is neither active nor the last one.
const otherRun = "This run is not active, and not the last one. Nothing was changed."

// done tells the sender of a command about a step or plan whether it had an effect.
func done(action id.Name, taskID string, ok bool, message string) event.NoticeData {
	level := "info"
	if !ok {
		level = "warning"
	}
	return event.NoticeData{
		Level: level, Code: "ACTION", Message: message, Action: action.String(), StepID: taskID, OK: &ok,
	}
}

// planningAgain tells the sender of a replan that the active run makes another plan.
func planningAgain(c command.Command) event.NoticeData {
	n := done(c.Verb, "", true, "Another plan is being made.")
	n.Mode = "in_run"
	return n
}

// planningAnew tells the sender of a replan that another run makes the plan.
func planningAnew(c command.Command) event.NoticeData {
	n := done(c.Verb, "", true, "A new run was started.")
	n.Mode = "restart"
	return n
}

// lastPlanned returns the last planned run, also if the window has forgotten it, if it has the step; else nil.
func (h control) lastPlanned(stepID string) *Run {
	last := h.s.window.Planned
	for _, r := range slices.Backward(h.s.queue.order) {
		if r.Plan != nil {
			last = r
			break
		}
	}
	if last == nil || !last.Plan.Planned || last.Plan.Step(stepID) == nil {
		return nil
	}
	return last
}

// lastQuestion returns what the last planned run was about; empty without one.
func (h control) lastQuestion() string {
	for _, r := range slices.Backward(h.s.queue.order) {
		if p := r.Plan; p != nil && p.Question != "" {
			return p.Question
		}
	}
	return h.s.window.Asking
}
