package conversation

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/plan"
)

// stop cancels a run with everything that is open in it, by the command c. It closes unfinished
// messages first.
func (s *State) stop(c command.Command, r *Run, reason string, now time.Time) []decision.Fact {
	var list []decision.Fact
	if p := r.Pipeline; p != nil {
		d := director{s: s, r: r, p: p, now: now}
		list = d.stop(c)
	}
	if w := s.Work(r.ID); r.Pipeline == nil && w != nil {
		list = stops(w)
	}
	return append(list, decision.Fact{ID: c.ID + ".cancelled." + r.ID, Data: event.RunCancelledData{
		RunID: r.ID, ExecutionID: r.ExecutionID, Reason: reason, By: c.Principal, CommandID: c.ID,
	}})
}

// stop cancels everything open in the run. The run's end tells the reason; its plan and tasks show
// a user's request.
func (d director) stop(c command.Command) []decision.Fact {
	var list []decision.Fact
	p := d.p
	if p.Job != nil {
		list = append(list, stops(p.Job)...)
	}
	if p.Phase == Planning || p.Phase == Confirming {
		if p.Dropped != "" {
			return list
		}
		return append(list, d.planCancelled(c.ID+"."+d.r.ID, userRequest, c.Principal, ""))
	}
	for _, t := range p.Tasks {
		if !t.Final() {
			list = append(list, d.endTask(t, c.ID+".cancelled."+t.ID, c.Principal, stops)...)
		}
	}
	return list
}

// endTask cancels a task at a user's request after closing its unfinished messages.
func (d director) endTask(t *Task, eventID, by string, closing func(*Work) []decision.Fact) []decision.Fact {
	var list []decision.Fact
	if t.State == plan.Running {
		list = closing(t.Work)
	}
	return append(list, d.taskCancelled(t, eventID, userRequest, by))
}

// current returns the director of the active pipeline run; ok is false without one.
func (s *State) current(now time.Time, rules Rules) (director, bool) {
	r := s.Active()
	if r == nil || r.Pipeline == nil {
		return director{}, false
	}
	return director{s: s, r: r, p: r.Pipeline, now: now, rules: rules}, true
}

// done tells the sender of a command about a task or plan whether it had an effect.
func done(action id.Name, taskID string, ok bool, message string) event.NoticeData {
	level := "info"
	if !ok {
		level = "warning"
	}
	return event.NoticeData{
		Level: level, Code: "ACTION", Message: message, Action: action.String(), StepID: taskID, OK: &ok,
	}
}

// notDone reports that the command had no effect, with the code of why, and returns the due events.
func (s *State) notDone(c command.Command, taskID string, code fault.Code, why string, now time.Time, rules Rules) (decision.Decision, error) {
	n := done(c.Verb, taskID, false, why)
	n.Error = string(code)
	return decision.Decision{Facts: s.advance(now, rules), Direct: n}, nil
}

// lacks returns the code of why nothing can be done about a step: its run or the step does not exist, or their time is over.
func (s *State) lacks(ref command.StepRef) fault.Code {
	r := s.Active()
	switch {
	case ref.RunID == "" && r == nil:
		r = s.lastPipeline(ref.StepID)
	case ref.RunID != "" && s.planned != nil && s.planned.ID == ref.RunID:
		r = s.planned
	case ref.RunID != "":
		if r = s.Run(ref.RunID); r == nil {
			return fault.RunNotFound
		}
	}
	if r == nil || r.Pipeline == nil || r.Pipeline.Task(ref.StepID) == nil {
		return fault.TaskNotFound
	}
	return fault.RunOver
}

func (s *State) wasDone(c command.Command, taskID string, now time.Time, rules Rules) (decision.Decision, error) {
	return decision.Decision{Facts: s.advance(now, rules), Direct: done(c.Verb, taskID, true, "Done.")}, nil
}

func (s *State) cancelTask(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	var ref command.StepRef
	if err := c.Decode(&ref); err != nil {
		return decision.Decision{}, err
	}
	eventID := c.ID + ".cancelled." + ref.StepID
	if s.known.Has(eventID) {
		return s.wasDone(c, ref.StepID, now, rules)
	}
	d, ok := s.current(now, rules)
	if !ok || !d.p.Planned || d.p.Phase != Solving || d.p.Task(ref.StepID) == nil {
		return s.notDone(c, ref.StepID, s.lacks(ref), "No such task is being solved.", now, rules)
	}
	if ref.RunID != "" && ref.RunID != d.r.ID {
		return s.notDone(c, ref.StepID, s.lacks(ref), otherRun, now, rules)
	}
	t := d.p.Task(ref.StepID)
	if t.Final() {
		return s.notDone(c, ref.StepID, s.lacks(ref), "The task has its outcome already.", now, rules)
	}
	return decision.Decision{Facts: d.endTask(t, eventID, c.Principal, stops), Direct: done(c.Verb, ref.StepID, true, "Done.")}, nil
}

// otherRun is the notice about a step of a run that is neither active nor the last one.
const otherRun = "This run is not active, and not the last one. Nothing was changed."

// restartTask gives a task another attempt, and with it what depends on it. After
// the end of a run, a new run repairs its result.
func (s *State) restartTask(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	var ref command.StepRef
	if err := c.Decode(&ref); err != nil {
		return decision.Decision{}, err
	}
	if s.known.Has(c.ID + ".restarted." + ref.StepID) {
		return s.wasDone(c, ref.StepID, now, rules)
	}
	d, on := s.current(now, rules)
	switch {
	case on && ref.RunID != "" && ref.RunID != d.r.ID:
		return s.notDone(c, ref.StepID, s.lacks(ref), otherRun, now, rules)
	case on && d.p.Planned && d.p.Task(ref.StepID) != nil && (d.p.Phase == Solving || d.p.Phase == Aggregating) && !d.p.Combined && d.p.Status == "":
		return decision.Decision{Facts: d.restart(c, ref), Direct: done(c.Verb, ref.StepID, true, "Done.")}, nil
	case s.Active() != nil:
		return s.notDone(c, ref.StepID, s.lacks(ref), "The run that is on has no such task, or cannot go back any more.", now, rules)
	}
	return s.repairStep(c, ref, now, rules)
}

// repairStep restarts a step of the last run, which is over, in a new run.
func (s *State) repairStep(c command.Command, ref command.StepRef, now time.Time, rules Rules) (decision.Decision, error) {
	old := s.lastPipeline(ref.StepID)
	if old == nil || s.Closed {
		return s.notDone(c, ref.StepID, s.lacks(ref), "This task does not exist. Check its id.", now, rules)
	}
	if ref.RunID != "" && ref.RunID != old.ID {
		return s.notDone(c, ref.StepID, s.lacks(ref), otherRun, now, rules)
	}
	begun := event.RunStartedData{
		RunID: RunID(c.ID), ExecutionID: s.executionID(now), MessageID: c.ID, Content: old.Content, Mode: event.ModeSteps, Repairs: old.ID,
		Budget: rules.budget(old.Spec), MaxConcurrent: rules.concurrent(old.Spec),
	}
	r := s.repair(begun)
	r.ExecutionID, r.Status = begun.ExecutionID, Running
	d := director{s: s, r: r, p: r.Pipeline, now: now, rules: rules}
	list := append([]decision.Fact{{ID: r.ID + ".started", Data: begun}}, d.restart(c, ref)...)
	return decision.Decision{Facts: list, Direct: done(c.Verb, ref.StepID, true, "Done.")}, nil
}

// lastPipeline returns the last run, if it was a pipeline run that had the task.
func (s *State) lastPipeline(taskID string) *Run {
	for i := len(s.order) - 1; i >= 0; i-- {
		if r := s.order[i]; r.Pipeline != nil {
			if !r.Pipeline.Planned || r.Pipeline.Task(taskID) == nil {
				return nil
			}
			return r
		}
	}
	if p := s.planned; p != nil && p.Pipeline.Planned && p.Pipeline.Task(taskID) != nil {
		return p
	}
	return nil
}

// repair returns the run that starts from the plan and results of another.
func (s *State) repair(d event.RunStartedData) *Run {
	old := s.runs[d.Repairs]
	if old == nil && s.planned != nil && s.planned.ID == d.Repairs {
		old = s.planned
	}
	r := &Run{ID: d.RunID, MessageID: d.MessageID, Content: d.Content, Status: Queued}
	r.Pipeline = &Pipeline{Phase: Solving, Question: d.Content, Planned: true}
	if old == nil || old.Pipeline == nil {
		return r
	}
	r.Principal, r.Spec = old.Principal, old.Spec
	r.Spec.Mode = d.Mode
	r.Pipeline.Question, r.Pipeline.Summary, r.Pipeline.PlanID = old.Pipeline.Question, old.Pipeline.Summary, old.Pipeline.PlanID
	for _, t := range old.Pipeline.Tasks {
		c := *t
		c.Work, c.Retry, c.Counted = nil, nil, c.Final()
		r.Pipeline.Tasks = append(r.Pipeline.Tasks, &c)
	}
	return r
}

// restart puts a task and what depends on it back to the start.
func (d director) restart(c command.Command, ref command.StepRef) []decision.Fact {
	var list []decision.Fact
	if d.p.Phase == Aggregating {
		list = discards(d.p.Job)
	}
	tries := ref.MaxAttempts
	if tries <= 0 || tries > d.rules.Tries {
		tries = d.rules.Tries
	}
	again := func(t *Task, reason string) {
		if t.State == plan.Running {
			list = append(list, d.endTask(t, c.ID+".ended."+t.ID, c.Principal, discards)...)
		}
		list = append(list, d.restarted(t, c.ID+".restarted."+t.ID, reason, c.Principal, t.Attempt+tries))
	}
	for _, dependant := range d.affected(ref.StepID) {
		if t := d.p.Task(dependant); t.State != plan.Waiting && !d.s.known.Has(c.ID+".restarted."+t.ID) {
			again(t, restartForDependency)
		}
	}
	again(d.p.Task(ref.StepID), restartUser) // last: it marks the command as done
	return list
}

// affected returns what depends on the task and could be solved after it: not what
// a person cancelled, nor what waits for that.
func (d director) affected(taskID string) []string {
	list := d.p.list()
	ids := plan.Dependants(list, taskID)
	ids = slices.DeleteFunc(ids, func(id string) bool { return d.p.Task(id).Error == byUser })
	doomed := plan.Doomed(list, func(id string) plan.State {
		if id == taskID || slices.Contains(ids, id) {
			return plan.Waiting
		}
		return d.p.state(id)
	})
	return slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(doomed, id) })
}

// byUser marks a task that a person cancelled.
const byUser = "cancelled: " + userRequest

func (s *State) cancelPlan(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	eventID := c.ID
	if s.known.Has(eventID + ".plan-cancelled") {
		return s.wasDone(c, "", now, rules)
	}
	d, ok := s.current(now, rules)
	if !ok || (d.p.Phase != Planning && d.p.Phase != Confirming) || d.p.Dropped != "" {
		return s.notDone(c, "", fault.RunOver, "No plan is being made.", now, rules)
	}
	var list []decision.Fact
	if d.p.Job != nil {
		list = discards(d.p.Job)
	}
	list = append(list, d.planCancelled(eventID, userRequest, c.Principal, ""))
	return decision.Decision{Facts: list, Direct: done(c.Verb, "", true, "Done.")}, nil
}

// respond accepts the answer to a question. The first one counts; later senders are told which.
func (s *State) respond(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	var d command.AnswerQuestion
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	in := s.inputs[d.InputID]
	if d.InputID == "" && d.CallID != "" {
		in = s.asked[d.CallID]
	}
	if in == nil {
		return s.refuse(c, fault.New(fault.InputNotFound), &Input{ID: d.InputID}, now, rules)
	}
	if !s.mayAnswer(c, in, rules) {
		return s.refuse(c, fault.Newf(fault.Forbidden, "You may not answer this question. Its owner or an operator may."), &Input{ID: in.ID, CallID: in.CallID}, now, rules)
	}
	if in.Asking != nil {
		return s.respondAgent(c, in, now, rules)
	}
	if f := in.takes(d); f != nil {
		return s.refuse(c, f, &Input{ID: in.ID, CallID: in.CallID}, now, rules)
	}
	if in.CallID != "" {
		return s.respondTool(c, d, in, now, rules)
	}
	if in.Budget {
		return s.respondBudget(c, d, in, now, rules)
	}
	return s.respondPlan(c, d, in, now, rules)
}

// takes returns the fault of an answer with members that are for other questions.
func (in *Input) takes(d command.AnswerQuestion) *fault.Fault {
	switch {
	case len(d.Message) > 0:
		return fault.Newf(fault.InvalidField, "Only agents of the swarm take a message as the answer. Send a decision.")
	case (in.CallID != "" || in.Budget) && (given(d.Steps) || given(d.Modified)):
		return fault.Newf(fault.InvalidField, "Only the answer to a plan may change tasks. The question stays open.")
	case (in.CallID == "" || in.Client) && given(d.Arguments):
		return fault.Newf(fault.InvalidField, "Only the answer to the call of a tool may change arguments. The question stays open.")
	}
	return nil
}

// respondPlan takes the answer to the question whether a plan is carried out.
func (s *State) respondPlan(c command.Command, d command.AnswerQuestion, in *Input, now time.Time, rules Rules) (decision.Decision, error) {
	switch {
	case in.Answered != nil && in.Answered.CommandID == c.ID:
		return s.answeredAgain(c, in, now, rules)
	case s.known.Has(c.ID + ".invalid"):
		return s.invalid(c, d, in, now, rules)
	case in.Answered != nil:
		return s.refuse(c, fault.New(fault.InputAnswered), in, now, rules)
	case in.Expired, in.Over && s.runs[in.RunID].Pipeline.Dropped == timedOut:
		return s.refuse(c, fault.New(fault.InputExpired), in, now, rules)
	case in.Over:
		return s.refuse(c, fault.Newf(fault.InputNotFound, "The question is not open any more: its plan was cancelled."), in, now, rules)
	}
	r := s.runs[in.RunID]
	dir := director{s: s, r: r, p: r.Pipeline, now: now, rules: rules}
	return decision.Of(dir.answer(c, d, in)), nil
}

// answeredAgain decides about the answer that counts, when it comes again. It answers a sender that wants it to.
func (s *State) answeredAgain(c command.Command, in *Input, now time.Time, rules Rules) (decision.Decision, error) {
	got, err := s.goOn(c, now, rules)
	if c.Again != "" {
		got.Direct = *in.Answered
	}
	return got, err
}

// invalid decides about an answer whose steps make no plan, when it comes again.
func (s *State) invalid(c command.Command, a command.AnswerQuestion, in *Input, now time.Time, rules Rules) (decision.Decision, error) {
	if r := s.runs[in.RunID]; c.Again != "" && r != nil && r.Pipeline != nil {
		if _, err := (director{s: s, r: r, p: r.Pipeline, now: now, rules: rules}).edited(a); err != nil {
			return s.refuse(c, fault.Newf(fault.PlanInvalid, "%s", fault.From(err, "").Public()), &Input{ID: in.ID}, now, rules)
		}
	}
	return s.goOn(c, now, rules)
}

// mayAnswer reports whether the sender of the answer may give it.
func (s *State) mayAnswer(c command.Command, in *Input, rules Rules) bool {
	asker := ""
	if r := s.runs[in.RunID]; r != nil {
		asker = r.Principal
	}
	return rules.Access.MayAnswer(c.Tenant, s.Owner(), asker, person(c))
}

func (d director) answer(c command.Command, a command.AnswerQuestion, in *Input) decision.Fact {
	data := event.InputAnsweredData{
		InputID: in.ID, RunID: d.r.ID, ExecutionID: d.r.ExecutionID, CommandID: c.ID, Decision: event.DecisionApprove,
		Feedback: a.Feedback, By: c.Principal, ClientID: a.ClientID, Segment: a.Segment, ElapsedMS: since(d.now, in.Asked),
		Proof: c.Proof(),
	}
	if !a.Approved {
		data.Decision = event.DecisionReject
		return decision.Fact{ID: c.ID + ".answered", Data: data}
	}
	tasks, err := d.edited(a)
	if err != nil {
		return decision.Fact{ID: c.ID + ".invalid", Data: event.PlanInvalidData{
			RunID: d.r.ID, ExecutionID: d.r.ExecutionID, PlanID: d.p.PlanID, InputID: in.ID, By: c.Principal,
			Code: string(fault.PlanInvalid), Message: fault.From(err, "").Public(),
			Raw: clip(string(append(bytes.Clone(a.Steps), a.Modified...)), maxRaw), Recovery: "manual_input",
		}}
	}
	if tasks != nil {
		data.Decision, data.Steps = event.DecisionModify, tasks
	}
	return decision.Fact{ID: c.ID + ".answered", Data: data}
}

// edited returns the tasks as the answer wants them, nil if it leaves them as they are.
func (d director) edited(a command.AnswerQuestion) ([]event.Step, error) {
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

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// same reports whether both lists are equal. Clients send the list back also when they have not
// changed it.
func same(a, b []event.Step) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// refuse tells the sender why the command has no effect.
func (s *State) refuse(c command.Command, f *fault.Fault, in *Input, now time.Time, rules Rules) (decision.Decision, error) {
	data := event.CommandRefusedData{CommandID: c.ID, Code: string(f.Code), Message: f.Message, Field: f.Field, InputID: in.ID}
	if f.Code == fault.InputNotFound {
		data.Field = "step_id"
	}
	if f.Code == fault.InputNotFound && s.Agent != nil {
		data.Field = "invocation_id"
	}
	if s.Agent != nil {
		data.AgentName = s.Agent.Name
	}
	if in.Answered != nil {
		data.AnsweredBy, data.Decision = orElse(in.Answered.By, in.Answered.ClientID), in.Answered.Decision
		data.AnsweredOn = in.Answered.ClientID
	}
	return decision.Decision{Facts: s.advance(now, rules), Direct: data}, nil
}
