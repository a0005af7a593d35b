package fold

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/waggle-dev/waggle/gateway/internal/jobs"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// run is one run of Waggle.
type run struct {
	id      string
	message *Message
	over    bool
	stretch int      // the number of the newest
	open    bool     // the newest stretch has not ended
	rests   []uint64 // the events with which stretches have ended
	end     []Chunk  // of the stretch that has ended
	step    bool     // a step of the message is open
	speaks  string   // the message of the model that has the newest step

	tools     map[string]bool // that the page runs
	calls     map[string]call
	questions []question
	said      map[string]bool    // messages of the model that are a part of the answer
	thoughts  map[string]thought // by open message of the model
	usage     Usage

	jobs    jobs.Jobs
	plan    *Plan
	steps   map[string]StepState
	solving bool // steps may start
	limit   int  // steps at once
}

// call is a tool call.
type call struct {
	name   string
	digest string // of the tool and the arguments that were shown
	over   bool
}

// question is one that the run has asked.
type question struct {
	id, scope string
	call      string          // the tool call that stands for it
	stretch   int             // in which it was asked
	options   json.RawMessage // of scope agent: the answers that it takes; none: any
	over      bool
	allowed   bool // it was answered, and not refused
}

// thought is how much of the reasoning of a message was shown.
type thought struct {
	parts int // that have begun
	shown int // bytes of the whole
	plan  narrate.Planner
}

// defaultLimit is how many steps of a run are solved at once where its log does not say so.
const defaultLimit = 10

func newRun(d event.RunStartedData, tools []event.ClientTool) *run {
	r := &run{
		id: d.RunID, message: &Message{ID: d.RunID, Role: RoleAssistant}, tools: map[string]bool{}, calls: map[string]call{}, said: map[string]bool{},
		thoughts: map[string]thought{}, jobs: jobs.Jobs{}, steps: map[string]StepState{}, solving: d.Mode == event.ModeSteps, limit: defaultLimit,
	}
	if d.Mode == event.ModeChat {
		r.jobs[d.RunID] = jobs.Job{}
	}
	if d.MaxConcurrent > 0 {
		r.limit = d.MaxConcurrent
	}
	for _, t := range tools {
		r.tools[t.Name] = true
	}
	return r
}

func (r *run) clone() *run {
	if r == nil {
		return nil
	}
	c := *r
	c.message, c.rests, c.questions = r.message.clone(), slices.Clone(r.rests), slices.Clone(r.questions)
	c.calls, c.said, c.thoughts = maps.Clone(r.calls), maps.Clone(r.said), maps.Clone(r.thoughts)
	c.jobs, c.steps = maps.Clone(r.jobs), maps.Clone(r.steps)
	return &c
}

// begin begins a stretch.
func (t *Chat) begin(d *Metadata) {
	r := t.run
	r.stretch++
	r.open, r.end, r.step = true, nil, false
	t.emit(Chunk{Type: Start, MessageID: r.message.ID, Metadata: d})
}

// ensure begins a stretch if none is open, for work that continues without an answer from people.
func (t *Chat) ensure() {
	if !t.run.open {
		t.begin(nil)
	}
}

// rest ends the stretch if nothing moves but people.
func (t *Chat) rest() {
	if r := t.run; r != nil && r.open && !r.over && !r.moves() {
		t.finish(Chunk{Type: Finish, FinishReason: FinishTools, Metadata: &Metadata{Stretch: r.stretch}})
	}
}

// finish ends what is open, and the stretch.
func (t *Chat) finish(end ...Chunk) {
	r := t.run
	t.closeStep()
	r.open, r.end = false, end
	r.rests = append(r.rests, t.seq)
	for _, c := range end {
		t.emit(c)
	}
	if n := len(t.frames); n > 0 && !t.mute {
		t.frames[n-1].Ends = true
	}
}

// conclude ends the run.
func (t *Chat) conclude(why string, end ...Chunk) {
	r := t.run
	for _, p := range r.message.Parts {
		if id := p.ToolCallID; id != "" && !r.calls[id].over {
			t.failed(id, why)
		}
	}
	r.over = true
	t.finish(end...)
}

// stepOf begins a step of the message with what a message of the model says first.
func (t *Chat) stepOf(messageID string, p event.Part) {
	r := t.run
	t.ensure()
	if p.Stage == event.StageSolving || r.speaks == messageID && r.step {
		return
	}
	r.speaks = messageID
	if n := len(r.message.Parts); r.step && n > 0 && r.message.Parts[n-1].Type == partStep {
		return // its parts were taken back
	}
	t.closeStep()
	t.emit(Chunk{Type: StartStep})
	r.step = true
}

// closeStep ends open texts, and the step.
func (t *Chat) closeStep() {
	r := t.run
	for i := range r.message.Parts {
		if p := &r.message.Parts[i]; p.State == stateStreaming {
			t.closeText(p, nil)
		}
	}
	if r.step {
		t.emit(Chunk{Type: FinishStep})
		r.step = false
	}
}

// asks reports whether a question is open.
func (r *run) asks() bool {
	return slices.ContainsFunc(r.questions, func(q question) bool { return !q.over })
}

// moves reports whether something of the run continues without an answer.
func (r *run) moves() bool {
	if !r.asks() {
		return true
	}
	works, running := r.jobs.Work()
	if works {
		return true
	}
	return r.solving && running < r.limit && r.due()
}

// due reports whether a step can start.
func (r *run) due() bool {
	if r.plan == nil {
		return false
	}
	return slices.ContainsFunc(r.plan.Steps, func(s Step) bool {
		return r.steps[s.ID].Status == stepPending && !slices.ContainsFunc(s.Dependencies, func(id string) bool { return r.steps[id].Status != stepCompleted })
	})
}

// question returns the index of a question of the run, -1 for an unknown one.
func (r *run) question(id string) int {
	if r == nil {
		return -1
	}
	return slices.IndexFunc(r.questions, func(q question) bool { return q.id == id })
}
