package conversation

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Brief is the input of a worker for a job.
type Brief struct {
	History  []Line // messages and tool calls of earlier runs, oldest first; for a chat run also its own question
	Dropped  int    // earlier runs left out of History, as far as they came after an import
	Stage    string // empty in a chat run
	Question string
	Context  json.RawMessage
	Feedback []string     // planning: why earlier plans of the run were invalid, oldest first
	Step     *event.Step  // solving
	Needs    []Result     // solving: results of the steps that it depends on
	Results  []Result     // aggregation: of all steps, in the order of the plan
	Own      []Line       // texts and tool results of the job so far
	Files    []event.File // of a planned run: those of its message
}

// Result is the outcome of a step.
type Result struct {
	Step   event.Step
	Status string // completed, failed, cancelled
	Output string
	Error  string
}

// Brief returns the input of a worker for the job. It holds the conversation and the calls of
// earlier runs. Each call has exactly one result, because no model accepts other histories.
// Whole earlier runs are dropped, oldest first, until the text fits into limit bytes; the job
// itself is always complete.
func (s *State) Brief(workID string, limit int) Brief {
	t := transcript{s}
	j := s.Job(workID)
	r := s.Run(j.RunID)
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
