package conversation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation/usage"
	"github.com/waggle-dev/waggle/services/plan"
)

// runFolds are the effects of events about messages of people and their runs.
var runFolds = map[event.Type]effect{
	event.MessageReceived: with((*State).received),
	event.MessageRefused: with(func(s *State, _ event.Event, d event.MessageRefusedData) error {
		s.known.refuse(d)
		return nil
	}),
	event.RunStarted:   with((*State).runStarted),
	event.RunCompleted: with(ends((*Run).completed, func(d event.RunCompletedData) string { return d.RunID })),
	event.RunFailed:    with(ends((*Run).failed, func(d event.RunFailedData) string { return d.RunID })),
	event.RunCancelled: with(marked[event.RunCancelledData], stopped, ends((*Run).cancelled, func(d event.RunCancelledData) string { return d.RunID })),
}

// Status is the state of a run.
type Status string

// The states of a run. The last three are terminal and never change.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Terminal reports whether the status is final.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Cancelled }

// Run is one answer to one message.
type Run struct {
	ID          string
	ExecutionID string
	MessageID   string
	Content     string
	Principal   string
	Sender      *event.Sender // nil: a user
	Attachments event.Attachments
	Spec        event.RunSpec
	Status      Status
	Started     time.Time // when it left the queue
	Over        time.Time // when it became terminal
	Answer      string
	Outcome     string // of a completed run with a plan
	Plan        *Plan  // nil in a chat run

	spending

	Jobs      []*Job      // as begun
	Questions []*Question // as asked
	Failing   time.Time   // when the first request to the model was made that failed since the last answer
	Weight    int         // of a terminal run
}

// Attempt returns the newest claim of the run's newest job, 0 if none was claimed.
func (r *Run) Attempt() int {
	if len(r.Jobs) == 0 {
		return 0
	}
	return r.Jobs[len(r.Jobs)-1].Attempt
}

// start begins the run. The job of a chat is the caller's to add.
func (r *Run) start(e event.Event, d event.RunStartedData) {
	r.Status, r.ExecutionID, r.Started = Running, d.ExecutionID, e.Time
	if d.Budget != nil {
		r.Budget = *d.Budget
	}
	if r.Spec.Mode == event.ModeChat {
		return
	}
	if r.Plan == nil {
		r.Plan = &Plan{Phase: Planning, Question: r.Content}
	}
	if r.Spec.Mode == event.ModeSteps && d.Repairs == "" {
		r.Plan.Phase, r.Plan.Steps = Solving, newSteps(r.Spec.Steps)
		r.Plan.Planned = plan.Check(r.Spec.Steps) == nil
	}
}

func (r *Run) completed(e event.Event, d event.RunCompletedData) bool {
	if !r.Status.Terminal() {
		r.Answer, r.Outcome = d.Content, d.Outcome
	}
	return r.end(Completed, e.Time)
}

func (r *Run) failed(e event.Event, d event.RunFailedData) bool {
	if !r.Status.Terminal() {
		r.Answer = d.Answer
	}
	return r.end(Failed, e.Time)
}

func (r *Run) cancelled(e event.Event, _ event.RunCancelledData) bool {
	return r.end(Cancelled, e.Time)
}

// stopped notes that a command has cancelled one of several runs.
func stopped(s *State, e event.Event, d event.RunCancelledData) error {
	if command, ok := strings.CutSuffix(e.ID, "."+d.RunID); ok {
		s.known.add(command)
	}
	return nil
}

// end makes the run terminal. The first terminal event counts; no writer appends
// a second one, and a fold must not let one undo the first.
func (r *Run) end(to Status, at time.Time) bool {
	if r.Status.Terminal() {
		return false
	}
	r.Status, r.Over = to, at
	for _, j := range r.Jobs {
		j.Ended = true
	}
	for _, q := range r.Questions {
		q.Over = true
	}
	if r.Plan != nil {
		r.Plan.Phase = Done
	}
	return true
}

// requestFailed notes that a request of a job to the model has failed.
func (r *Run) requestFailed(j *Job, now time.Time) {
	r.Failing = earliest(r.Failing, earliest(j.Asked, now))
}

// exhausted reports whether a request at the time due would exceed the limit for a run without an
// answer of the model. 0 = unlimited.
func (r *Run) exhausted(due, asked time.Time, limit time.Duration) bool {
	since := earliest(r.Failing, asked)
	return limit > 0 && !since.IsZero() && due.Sub(since) > limit
}

// earliest returns first, or otherwise if that is zero.
func earliest(first, otherwise time.Time) time.Time {
	if first.IsZero() {
		return otherwise
	}
	return first
}

// cutOff is what people have read of the answer of a plan that was stopped.
func (r *Run) cutOff() string {
	for _, j := range slices.Backward(r.Jobs) {
		if n := len(j.Messages) - 1; j.Part.Stage == event.StageAggregation && n >= 0 && j.Messages[n].stopped() {
			return j.Messages[n].shown()
		}
	}
	return ""
}

// change replaces the arguments of a call that the model has asked for. The list of the event stays as it is.
func (r *Run) change(callID string, arguments json.RawMessage) {
	for _, j := range r.Jobs {
		for i, m := range j.Messages {
			n := slices.IndexFunc(m.ToolCalls, func(tc event.ToolCall) bool { return tc.ID == callID })
			if n < 0 {
				continue
			}
			calls := slices.Clone(m.ToolCalls)
			calls[n].Arguments = arguments
			j.Messages[i].ToolCalls = calls
			return
		}
	}
}

// capability is the capability that the step of a job requires; empty if any worker can do it.
func (r *Run) capability(j *Job) string {
	if j.Part.Stage != event.StageSolving || r.Plan == nil {
		return ""
	}
	t := r.Plan.Step(j.Part.StepID)
	if t == nil {
		return ""
	}
	return t.Capability
}

// busy reports whether some worker has a job of the run.
func (r *Run) busy() bool {
	for _, j := range r.Jobs {
		if j.Attempt > 0 && !j.Ended && !j.Paused && j.Failure == nil {
			return true
		}
	}
	return false
}

// stopped returns the report of the worker that stopped a job because the budget or a day's quota
// is used up; nil without one.
func (r *Run) stopped() *event.JobFailedData {
	for _, j := range r.Jobs {
		if f := j.Failure; f != nil && (f.Code == string(fault.BudgetExceeded) || f.Code == string(fault.QuotaExceeded)) {
			return f
		}
	}
	return nil
}

// tally adds up the consumption of the run's jobs.
func (r *Run) tally() usage.Tally {
	var t usage.Tally
	for _, j := range r.Jobs {
		t.Add(j.Tally)
	}
	return t
}

// exceeded returns the usage that keeps the run from the model, or from a call of a tool.
func (r *Run) exceeded(tool bool) (use event.BudgetUse, over bool) {
	return r.spending.exceeded(r.tally(), tool)
}

// Use is the consumption of the run, and the resource that is used up.
func (r *Run) Use() event.BudgetUse {
	use, _ := r.exceeded(true)
	return use
}

// Weights of the parts of a run excluding their texts: each part has ids and times.
const (
	runWeight     = 192
	messageWeight = 64
	answerWeight  = 512
)

// outOfQuota returns why the run ends if that is a day's quota, else nil.
func (r *Run) outOfQuota() *fault.Fault {
	if f := r.stopped(); f != nil && f.Code == string(fault.QuotaExceeded) {
		return fault.Newf(fault.QuotaExceeded, "%s", f.Message)
	}
	return r.quotaRefused()
}

// bare returns what a restart of a step needs of a run.
func (r *Run) bare() *Run {
	p := r.Plan
	out := &Run{ID: r.ID, Content: r.Content, Principal: r.Principal, Spec: r.Spec, Status: r.Status}
	out.Plan = &Plan{Phase: p.Phase, Question: p.Question, Summary: p.Summary, PlanID: p.PlanID, Planned: p.Planned}
	for _, t := range p.Steps {
		c := *t
		c.Job, c.JobID, c.Retry = nil, "", nil
		out.Plan.Steps = append(out.Plan.Steps, &c)
	}
	return out
}

// weigh counts the bytes that a finished run takes. The answer of a chat is its last message.
func (r *Run) weigh(known calls) int {
	n := runWeight + len(r.Content) + sizeOf(r.Spec) + sizeOf(r.Attachments) + answerWeight*r.besidesPlan()
	for _, j := range r.Jobs {
		n += messageWeight + len(j.Partial)
		for _, m := range j.Messages {
			n += messageWeight + len(m.Content) + m.PassBack.Size(m.Reasoning)
			for _, tc := range m.ToolCalls {
				n += messageWeight + 2*len(tc.Arguments)
				if c := known.byID[tc.ID]; c != nil {
					n += len(c.Result)
				}
			}
		}
	}
	p := r.Plan
	if p == nil {
		return n
	}
	n += len(r.Answer) + len(p.Question) + len(p.Context) + len(p.Summary) + len(p.Result) + sizeOf(p.Invalid) + sizeOf(p.Feedback)
	if p.Asked != nil {
		n += answerWeight + sizeOf(p.Asked.Answered)
	}
	for _, t := range p.Steps {
		n += runWeight + sizeOf(t.Step) + len(t.Output) + len(t.Error)
	}
	return n
}

// sizeOf returns the length of a value as JSON.
func sizeOf(v any) int {
	raw, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(raw)
}

// stepRestarted forgets that the model has failed, as people want the step tried again.
func (r *Run) stepRestarted(_ event.Event, d event.StepRestartedData) {
	if d.Reason != restartAfterError {
		r.Failing = time.Time{}
	}
}

// ask adds a question. One that is asked again takes the place of the former.
func (r *Run) ask(q *Question) {
	r.Questions = append(slices.DeleteFunc(r.Questions, func(o *Question) bool { return o.ID == q.ID }), q)
	r.refer(q)
}

// refer has the budget and the plan know the questions about them.
func (r *Run) refer(q *Question) {
	switch {
	case q.Budget:
		r.asked = append(r.asked, q)
	case q.ofPlan() && r.Plan != nil:
		r.Plan.Asked = q
	}
}

// besidesPlan counts the questions that are not about the plan.
func (r *Run) besidesPlan() int {
	n := 0
	for _, q := range r.Questions {
		if !q.ofPlan() {
			n++
		}
	}
	return n
}

// where returns the jobs of the run that fit, as begun. A nil run has none.
func (r *Run) where(fits func(*Job) bool) []*Job {
	if r == nil {
		return nil
	}
	var out []*Job
	for _, j := range r.Jobs {
		if fits(j) {
			out = append(out, j)
		}
	}
	return out
}

// link finds the jobs and questions that parts of the run refer to.
func (r *Run) link(known jobs) error {
	for _, q := range r.Questions {
		r.refer(q)
	}
	if r.Plan == nil {
		return nil
	}
	missing := r.Plan.link(known)
	for _, t := range r.Plan.Steps {
		missing = missing || t.link(known)
	}
	if missing {
		return fmt.Errorf("it lacks a job of the run %q", r.ID)
	}
	return nil
}
