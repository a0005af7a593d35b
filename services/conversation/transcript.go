package conversation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

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

// transcript is the conversation of a state as a model sees it.
type transcript struct{ s *State }

// before returns the conversation before r. The newest runs come first until the text is as long as allowed.
func (t transcript) before(r *Run, limit int) (lines []Line, dropped int) {
	at := t.s.queue.index(r.ID)
	lines, dropped = make([]Line, 0, 2*max(at, 0)+len(t.s.history)), t.s.window.Lost.Runs
	for i := at - 1; i >= 0; i-- {
		begin := len(lines)
		lines = t.lines(lines, t.s.queue.order[i])
		if limit -= bytesOf(lines[begin:]); limit < 0 {
			lines, dropped = lines[:begin], dropped+i+1
			break
		}
		slices.Reverse(lines[begin:])
	}
	if limit >= 0 && bytesOf(t.s.history) <= limit {
		begin := len(lines)
		lines = append(lines, t.s.history...)
		slices.Reverse(lines[begin:])
	}
	slices.Reverse(lines)
	return lines, dropped
}

// lines appends a run as later runs see it: question and answer, and of a chat run also its calls.
func (t transcript) lines(out []Line, r *Run) []Line {
	out = append(told(out, r), t.asks(r))
	if r.Plan != nil {
		if text := orElse(r.Answer, r.cutOff()); text != "" {
			out = append(out, Line{Role: event.RoleAssistant, Content: text})
		}
		return out
	}
	for _, j := range r.Jobs {
		out = t.said(out, j)
	}
	return out
}

// asks is the message that the run answers, with its files.
func (t transcript) asks(r *Run) Line {
	return Line{Role: event.RoleUser, Content: t.s.question(r), Files: r.Spec.Files}
}

// said appends the messages and tool results of a job, up to a call that still gets its outcome.
func (t transcript) said(out []Line, j *Job) []Line {
	over := t.s.queue.byID[j.RunID] == nil || t.s.queue.byID[j.RunID].Status.Terminal()
	for _, m := range j.Messages {
		if !over && len(t.s.calls.unsettled(m)) > 0 {
			break
		}
		out = append(out, Line{
			Role: event.RoleAssistant, Content: m.shown(), ToolCalls: m.ToolCalls, Reasoning: m.Reasoning, PassBack: m.PassBack,
		})
		for _, tc := range m.ToolCalls {
			out = append(out, t.resultOf(tc))
		}
	}
	return out
}

// resultOf is the result of a call for the model. A call that its run has left without one, because it was cancelled or
// failed, gets a result that explains this: a model without it makes the call again.
func (t transcript) resultOf(tc event.ToolCall) Line {
	out := Line{Role: "tool", ToolCallID: tc.ID, IsError: true}
	c := t.s.calls.byID[tc.ID]
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
	if a, _ := t.s.questions.approval(tc.ID); a.Decision == event.DecisionModify {
		out.Content = event.CallChanged + out.Content
	}
	return out
}

// brief: see State.Brief.
func (t transcript) brief(jobID string, limit int) Brief {
	j := t.s.Job(jobID)
	r := j.run
	b := Brief{Stage: j.Part.Stage, Question: r.Content, Own: t.said(nil, j)}
	size := bytesOf(b.Own)
	if r.Plan == nil {
		size += bytesOf(append(told(nil, r), t.asks(r)))
	}
	b.History, b.Dropped = t.before(r, limit-size)
	p := r.Plan
	if p == nil {
		b.History = append(told(b.History, r), t.asks(r))
		return b
	}
	b.History, b.Files = told(b.History, r), r.Spec.Files
	if b.Question, b.Context = p.Question, rawOf(p.Context); len(b.Context) == 0 && len(r.Spec.Facts) > 0 {
		b.Context, _ = json.Marshal(r.Spec.Facts) //nolint:errchkjson // strings
	}
	switch j.Part.Stage {
	case event.StagePlanning:
		b.Feedback = append(append(b.Feedback, p.Feedback...), p.Invalid...)
	case event.StageSolving:
		step := p.Step(j.Part.StepID)
		b.Step = &step.Step
		for _, id := range step.Dependencies {
			b.Needs = append(b.Needs, p.Step(id).result())
		}
	case event.StageAggregation:
		for _, step := range p.Steps {
			b.Results = append(b.Results, step.result())
		}
	}
	return b
}

// snapshot: see State.Snapshot.
func (t transcript) snapshot(limit int) Snapshot {
	s := t.s
	snap := Snapshot{
		Created: s.Created, Dialect: s.Dialect, Principal: s.Principal, Preferences: s.Preferences,
		Messages: s.totals.Messages, Steps: s.totals.Steps, Usage: s.totals.Usage(), Tainted: s.Tainted,
	}
	end := len(s.queue.order)
	for i, r := range s.queue.order {
		switch {
		case r.Status == Queued:
			snap.Queued = append(snap.Queued, snapshotOf(r))
		case r.Status == Running, i == len(s.queue.order)-1 && r.Plan != nil:
			one := snapshotOf(r)
			snap.Run = &one
			end = min(end, i)
		}
	}
	snap.History = append(snap.History, s.history...)
	for _, r := range s.queue.order[:end] {
		if r.Status.Terminal() {
			snap.History = t.lines(snap.History, r)
		}
	}
	dropped := 0
	for size := bytesOf(snap.History); size > limit && len(snap.History) > 0; dropped++ {
		size -= bytesOf(snap.History[:1])
		snap.History = snap.History[1:]
	}
	// A history must not begin with the result of a call that was left out.
	for len(snap.History) > 0 && snap.History[0].Role != event.RoleUser {
		snap.History = snap.History[1:]
		dropped++
	}
	if dropped > 0 {
		snap.Warnings = append(snap.Warnings, fmt.Sprintf("The %d oldest lines of the conversation were left out.", dropped))
	}
	snap.Warnings = append(snap.Warnings, t.unfinished()...)
	return snap
}

// unfinished names the calls that may still have their effect where they were made.
func (t transcript) unfinished() []string {
	var out []string
	for _, r := range t.s.queue.order {
		for _, j := range r.Jobs {
			if r.Status != Running || j.Ended || len(j.Messages) == 0 {
				continue
			}
			for _, tc := range t.s.calls.unsettled(j.Messages[len(j.Messages)-1]) {
				if c := t.s.calls.byID[tc.ID]; c != nil && c.Status == CallStarted && !c.Idempotent {
					out = append(out, "Outcome unknown: the tool "+c.Tool+" was running. Check whether it had its effect before it is called again.")
				}
			}
		}
	}
	return out
}

// told appends the conversation that the client has brought with the message of a run.
func told(out []Line, r *Run) []Line {
	for _, m := range r.Spec.History {
		out = append(out, Line{Role: m.Role, Content: m.Content})
	}
	return out
}

// listed names files. Texts are in the message already.
func listed(files []event.File) string {
	var b strings.Builder
	for _, f := range files {
		if f.Text() {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "\nFile: %s (%s, %d bytes)", orElse(f.Name, f.Kind), f.MediaType, f.Size)
	}
	return b.String()
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
