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
