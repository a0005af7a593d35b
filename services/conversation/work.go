package conversation

import (
	"encoding/json"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// StepKind is the kind of a worker's next step for a run.
type StepKind int

// The steps of a job, in the order in which they are looked for.
const (
	StepNone     StepKind = iota // it no longer needs a worker
	StepDiscard                  // messages of a dead attempt are still open
	StepCalls                    // tool calls of the last message have no outcome, and some may run or be asked for
	StepWait                     // all of them wait for people
	StepGenerate                 // it is the model's turn
	StepFinish                   // the last message is the answer
	StepAsk                      // ask people whether to renew the run's budget
	StepStop                     // the run's budget is used up
)

// Step is the next thing to do for a job.
type Step struct {
	Kind    StepKind
	Discard []string         // StepDiscard: message ids
	Calls   []event.ToolCall // StepCalls: those without an outcome that may run now, in the model's order
	Ask     []event.ToolCall // StepCalls: those that people have to be asked about first
	Inputs  []string         // StepCalls, StepWait: the questions that are open
	Answer  Message          // StepFinish
	Rounds  int              // messages of the model so far

	Use event.BudgetUse // StepAsk, StepStop: the resource that is used up
}

// Next returns the rest of the job. It depends on the log only, so that a worker that takes over
// continues exactly where the dead one stopped.
func (s *State) Next(workID string) Step {
	w := s.Work(workID)
	if w == nil || w.Ended || w.Failure != nil {
		return Step{Kind: StepNone}
	}
	st := Step{Rounds: len(w.Messages)}
	if len(w.Open) > 0 {
		st.Kind, st.Discard = StepDiscard, append([]string(nil), w.Open...)
		return st
	}
	if len(w.Messages) == 0 {
		st.Kind = StepGenerate
		return s.afford(w, st)
	}
	last := w.Messages[len(w.Messages)-1]
	if last.stopped() && last.Attempt == w.Attempt { // the end of the job follows
		return Step{Kind: StepNone}
	}
	if last.stopped() { // the process that stopped it died before that
		st.Kind = StepGenerate
		return s.afford(w, st)
	}
	if len(last.ToolCalls) == 0 {
		st.Kind, st.Answer = StepFinish, last
		return st
	}
	if calls := s.unsettled(last); len(calls) > 0 {
		rounds := st.Rounds
		st = s.sort(calls)
		st.Rounds = rounds
		return s.afford(w, st)
	}
	st.Kind = StepGenerate
	return s.afford(w, st)
}

func (s *State) unsettled(m Message) []event.ToolCall {
	var out []event.ToolCall
	for _, tc := range m.ToolCalls {
		if c := s.calls[tc.ID]; c == nil || !c.Status.Final() {
			out = append(out, tc)
		}
	}
	return out
}

// Line is one line of the conversation as a model sees it.
type Line struct {
	Role       string           `json:"role"` // user, assistant, tool
	Content    string           `json:"content,omitempty"`
	ToolCalls  []event.ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string           `json:"tool_call_id,omitempty"`
	IsError    bool             `json:"is_error,omitempty"`
	Files      []event.File     `json:"files,omitempty"` // of a user's message, or of the result of a tool

	Reasoning string          `json:"-"` // of an assistant's message, with what its provider wants back: not exported
	PassBack  *event.PassBack `json:"-"`
}

// Result is the outcome of a task.
type Result struct {
	Task   event.Step
	Status string // completed, failed, cancelled
	Output string
	Error  string
}

// Brief is the input of a worker for a job.
type Brief struct {
	History  []Line // messages and tool calls of earlier runs, oldest first; for a chat run also its own question
	Dropped  int    // earlier runs left out of History, as far as they came after an import
	Stage    string // empty in a chat run
	Question string
	Context  json.RawMessage
	Feedback []string     // planning: why earlier plans of the run were invalid, oldest first
	Task     *event.Step  // solving
	Inputs   []Result     // solving: results of its dependencies
	Results  []Result     // aggregation: of all tasks, in the order of the plan
	Own      []Line       // texts and tool results of the job so far
	Files    []event.File // of a pipeline run: those of its message
}

// Brief returns the input of a worker for the job. It holds the conversation and the calls of
// earlier runs. Each call has exactly one result, because no model accepts other histories.
// Whole earlier runs are dropped, oldest first, until the text fits into limit bytes; the job
// itself is always complete.
func (s *State) Brief(workID string, limit int) Brief {
	w := s.Work(workID)
	r := s.Run(w.RunID)
	b := Brief{Stage: w.Part.Stage, Question: r.Content, Own: s.said(nil, w)}
	size := bytesOf(b.Own)
	if r.Pipeline == nil {
		size += bytesOf(append(told(nil, r), s.asks(r)))
	}
	b.History, b.Dropped = s.before(r, limit-size)
	p := r.Pipeline
	if p == nil {
		b.History = append(told(b.History, r), s.asks(r))
		return b
	}
	b.History, b.Files = told(b.History, r), r.Spec.Files
	if b.Question, b.Context = p.Question, p.Context; len(b.Context) == 0 && len(r.Spec.Facts) > 0 {
		b.Context, _ = json.Marshal(r.Spec.Facts) //nolint:errchkjson // strings
	}
	switch w.Part.Stage {
	case event.StagePlanning:
		b.Feedback = append(append(b.Feedback, p.Feedback...), p.Invalid...)
	case event.StageSolving:
		t := p.Task(w.Part.StepID)
		b.Task = &t.Step
		for _, id := range t.Dependencies {
			b.Inputs = append(b.Inputs, p.Task(id).result())
		}
	case event.StageAggregation:
		for _, t := range p.Tasks {
			b.Results = append(b.Results, t.result())
		}
	}
	return b
}

func (t *Task) result() Result {
	return Result{Task: t.Step, Status: stateNames[t.State], Output: t.Output, Error: t.Error}
}

// before returns the conversation before r. The newest runs come first until the text is as long as allowed.
func (s *State) before(r *Run, limit int) (lines []Line, dropped int) {
	at := s.index(r.ID)
	lines, dropped = make([]Line, 0, 2*max(at, 0)+len(s.history)), s.lost.Runs
	for i := at - 1; i >= 0; i-- {
		begin := len(lines)
		lines = s.lines(lines, s.order[i])
		if limit -= bytesOf(lines[begin:]); limit < 0 {
			lines, dropped = lines[:begin], dropped+i+1
			break
		}
		slices.Reverse(lines[begin:])
	}
	if limit >= 0 && bytesOf(s.history) <= limit {
		begin := len(lines)
		lines = append(lines, s.history...)
		slices.Reverse(lines[begin:])
	}
	slices.Reverse(lines)
	return lines, dropped
}

// index returns the place of a run, which is mostly among the newest; -1 without it.
func (s *State) index(runID string) int {
	for i, r := range slices.Backward(s.order) {
		if r.ID == runID {
			return i
		}
	}
	return -1
}

// lines appends a run as later runs see it: question and answer, and of a chat run also its calls.
func (s *State) lines(out []Line, r *Run) []Line {
	out = append(told(out, r), s.asks(r))
	if r.Pipeline != nil {
		if text := orElse(r.Answer, r.cutOff()); text != "" {
			out = append(out, Line{Role: event.RoleAssistant, Content: text})
		}
		return out
	}
	for _, w := range r.works {
		out = s.said(out, w)
	}
	return out
}

// asks is the message that the run answers, with its files.
func (s *State) asks(r *Run) Line {
	return Line{Role: event.RoleUser, Content: s.question(r), Files: r.Spec.Files}
}

// told appends the conversation that the client has brought with the message of a run.
func told(out []Line, r *Run) []Line {
	for _, m := range r.Spec.History {
		out = append(out, Line{Role: m.Role, Content: m.Content})
	}
	return out
}

// said appends the messages and tool results of a job, up to a call that still gets its outcome.
func (s *State) said(out []Line, w *Work) []Line {
	over := s.runs[w.RunID] == nil || s.runs[w.RunID].Status.Terminal()
	for _, m := range w.Messages {
		if !over && len(s.unsettled(m)) > 0 {
			break
		}
		out = append(out, Line{
			Role: event.RoleAssistant, Content: m.shown(), ToolCalls: m.ToolCalls, Reasoning: m.Reasoning, PassBack: m.PassBack,
		})
		for _, tc := range m.ToolCalls {
			out = append(out, s.resultOf(tc))
		}
	}
	return out
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

// cutMark tells a model that people have read no more than this of an earlier answer.
const cutMark = "\n\n[Stopped here: people have not got the rest of this answer.]"

// shown is the text for the model.
func (m Message) shown() string {
	if m.stopped() {
		return m.Content + cutMark
	}
	return m.Content
}

// resultOf is the result of a call for the model. A call that its run has left without one, because it was cancelled or
// failed, says so: a model that does not know of a call makes it again.
func (s *State) resultOf(tc event.ToolCall) Line {
	out := Line{Role: "tool", ToolCallID: tc.ID, IsError: true}
	c := s.calls[tc.ID]
	switch {
	case c == nil, c.Status == CallIntended:
		out.Content = callDropped
	case !c.Status.Final() && c.Idempotent:
		out.Content = callInterrupted
	case !c.Status.Final():
		out.Content = callUnknown
	default:
		out.Content, out.Files, out.IsError = c.Result+listed(c.Files), c.Files, c.Status != CallCompleted
	}
	if a, _ := s.Approval(tc.ID); a.Decision == event.DecisionModify {
		out.Content = event.CallChanged + out.Content
	}
	return out
}

// Results of calls whose run ended before them.
const (
	callDropped     = "Not done: the run was ended before this call was made."
	callInterrupted = "Cancelled: the run was ended while this call was under way. It may be repeated."
	callUnknown     = "Cancelled, effect unknown: the run was ended while this call was under way. It may or may not have had its effect. Check before you repeat it."
)

// fileBytes is what a file counts in a conversation: about 1,500 tokens, which models take for an image.
const fileBytes = 6 << 10

func bytesOf(lines []Line) int {
	n := 0
	for _, l := range lines {
		n += len(l.Content) + fileBytes*len(l.Files) + l.PassBack.Size(l.Reasoning)
		for _, tc := range l.ToolCalls {
			n += len(tc.Arguments)
		}
	}
	return n
}
