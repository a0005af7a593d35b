package conversation

import (
	"encoding/json"
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
	event.RunCompleted: with(ends(func(d event.RunCompletedData) string { return d.RunID }, (*Run).completed)),
	event.RunFailed:    with(ends(func(d event.RunFailedData) string { return d.RunID }, (*Run).failed)),
	event.RunCancelled: with(marked[event.RunCancelledData], stopped, ends(func(d event.RunCancelledData) string { return d.RunID }, (*Run).cancelled)),
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
	Outcome     string    // of a completed pipeline run
	Pipeline    *Pipeline // nil in a chat run

	spending

	works     []*Work   // its jobs, as begun
	questions []*Input  // about its tool calls and its budget, as asked
	failing   time.Time // when the first request to the model was made that failed since the last answer
	weight    int       // of a terminal run
}

// Attempt returns the newest claim of the run's newest job, 0 if none was claimed.
func (r *Run) Attempt() int {
	if len(r.works) == 0 {
		return 0
	}
	return r.works[len(r.works)-1].Attempt
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
	if r.Pipeline == nil {
		r.Pipeline = &Pipeline{Phase: Planning, Question: r.Content}
	}
	if r.Spec.Mode == event.ModeSteps && d.Repairs == "" {
		r.Pipeline.Phase, r.Pipeline.Tasks = Solving, newTasks(r.Spec.Steps)
		r.Pipeline.Planned = plan.Check(r.Spec.Steps) == nil
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
		s.known.Add(command)
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
	for _, w := range r.works {
		w.Ended = true
	}
	for _, in := range r.questions {
		in.Over = true
	}
	if r.Pipeline != nil {
		r.Pipeline.Phase = Done
		r.Pipeline.withdraw()
	}
	return true
}

// requestFailed notes that a request of a job to the model has failed.
func (r *Run) requestFailed(w *Work, now time.Time) {
	r.failing = earliest(r.failing, earliest(w.asked, now))
}

// exhausted reports whether a request at the time due would exceed the limit for a run without an
// answer of the model. 0 = unlimited.
func (r *Run) exhausted(due, asked time.Time, limit time.Duration) bool {
	since := earliest(r.failing, asked)
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
	for _, w := range slices.Backward(r.works) {
		if n := len(w.Messages) - 1; w.Part.Stage == event.StageAggregation && n >= 0 && w.Messages[n].stopped() {
			return w.Messages[n].shown()
		}
	}
	return ""
}

// change replaces the arguments of a call that the model has asked for. The list of the event stays as it is.
func (r *Run) change(callID string, arguments json.RawMessage) {
	for _, w := range r.works {
		for i, m := range w.Messages {
			n := slices.IndexFunc(m.ToolCalls, func(tc event.ToolCall) bool { return tc.ID == callID })
			if n < 0 {
				continue
			}
			calls := slices.Clone(m.ToolCalls)
			calls[n].Arguments = arguments
			w.Messages[i].ToolCalls = calls
			return
		}
	}
}

// capability is the capability that the task of a job requires; empty if any worker will do.
func (r *Run) capability(w *Work) string {
	if w.Part.Stage != event.StageSolving || r.Pipeline == nil {
		return ""
	}
	t := r.Pipeline.Task(w.Part.StepID)
	if t == nil {
		return ""
	}
	return t.Capability
}

// busy reports whether some worker has a job of the run.
func (r *Run) busy() bool {
	for _, w := range r.works {
		if w.Attempt > 0 && !w.Ended && !w.Paused && w.Failure == nil {
			return true
		}
	}
	return false
}

// stopped returns the report of the worker that stopped a job because the budget or a day's quota
// is used up; nil without one.
func (r *Run) stopped() *event.JobFailedData {
	for _, w := range r.works {
		if f := w.Failure; f != nil && (f.Code == string(fault.BudgetExceeded) || f.Code == string(fault.QuotaExceeded)) {
			return f
		}
	}
	return nil
}

// tally adds up the consumption of the run's jobs.
func (r *Run) tally() usage.Tally {
	var t usage.Tally
	for _, w := range r.works {
		t.Add(w.tally)
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

// Weights of the parts of a run besides their texts: each part has ids and times.
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
	p := r.Pipeline
	out := &Run{ID: r.ID, Content: r.Content, Principal: r.Principal, Spec: r.Spec, Status: r.Status}
	out.Pipeline = &Pipeline{Phase: p.Phase, Question: p.Question, Summary: p.Summary, PlanID: p.PlanID, Planned: p.Planned}
	for _, t := range p.Tasks {
		c := *t
		c.Work, c.Retry = nil, nil
		out.Pipeline.Tasks = append(out.Pipeline.Tasks, &c)
	}
	return out
}

// weigh counts the bytes that a finished run takes. The answer of a chat is its last message.
func (r *Run) weigh(known calls) int {
	n := runWeight + len(r.Content) + sizeOf(r.Spec) + sizeOf(r.Attachments) + answerWeight*len(r.questions)
	for _, w := range r.works {
		n += messageWeight + len(w.partial)
		for _, m := range w.Messages {
			n += messageWeight + len(m.Content) + m.PassBack.Size(m.Reasoning)
			for _, tc := range m.ToolCalls {
				n += messageWeight + 2*len(tc.Arguments)
				if c := known.byID[tc.ID]; c != nil {
					n += len(c.Result)
				}
			}
		}
	}
	p := r.Pipeline
	if p == nil {
		return n
	}
	n += len(r.Answer) + len(p.Question) + len(p.Context) + len(p.Summary) + len(p.Result) + sizeOf(p.Invalid) + sizeOf(p.Feedback)
	if p.Input != nil {
		n += answerWeight + sizeOf(p.Input.Answered)
	}
	for _, t := range p.Tasks {
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
		r.failing = time.Time{}
	}
}

// ask adds a question about a call or the budget, or of an agent.
func (r *Run) ask(in *Input) {
	r.questions = append(r.questions, in)
	if in.Budget {
		r.budgets = append(r.budgets, in)
	}
}
