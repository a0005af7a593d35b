package agui

import (
	"maps"
	"slices"
	"strconv"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// run is one run of Waggle: its stretches, and everything that is open in it.
type run struct {
	id       string
	first    string   // the id of its first stretch
	stretch  string   // the id of the stretch that is open; empty = none
	last     string   // the id of the newest stretch
	ids      []string // of all stretches
	over     bool     // it has ended
	end      *ending
	deferred []deferred // answers that came between two stretches

	steps []string // that are open, in the order in which they began
	subs  []*sub   // that have begun and have no result, in the order in which they began
	texts []*text  // messages that are open
	calls map[string]call
	used  map[string]int // how often a subagent's id was used in the stretch

	jobs      map[string]job
	plan      *plan
	solving   bool // tasks may start
	limit     int  // tasks at once
	questions []Question
	acts      []*activity
	usage     []wire.TokenUsage // of the stretch
	said      map[string]bool   // messages without an owner that have text
}

// Question is one that the run has asked.
type Question struct {
	wire.Interrupt
	Scope  string
	Digest string // of scope tool: an approval holds for exactly this call
	Over   bool   // it was answered, or its time has passed
	// The answer, if there was one.
	Decision, By, ClientID string
}

// sub is a subagent.
type sub struct {
	id, name, description string
	work                  string // the job
	suspended             bool   // its stretch has ended
}

// text is a message that is open.
type text struct {
	id, sub   string
	reasoning bool
	body      []byte
}

// call is a tool call that was shown.
type call struct {
	sub string
	run string // the stretch
}

// job is a piece of work.
type job struct {
	step   string
	inputs []string // questions that it waits for; nil = it is due or at work
}

// deferred is an answer that came while no stretch was open.
type deferred struct {
	at event.Event
	of Question
}

// ending is how a stretch ended.
type ending struct {
	boundary *wire.Boundary
	failure  *wire.Failure
}

// defaultLimit is how many tasks of a run are solved at once where its log does not say so.
const defaultLimit = 10

func newRun(d event.RunStartedData) *run {
	r := &run{
		id: d.RunID, first: d.MessageID, calls: map[string]call{}, used: map[string]int{}, jobs: map[string]job{}, said: map[string]bool{},
		limit: defaultLimit, solving: d.Mode == event.ModeSteps,
	}
	if d.Mode == event.ModeChat {
		r.jobs[d.RunID] = job{}
	}
	return r
}

func (r *run) clone() *run {
	if r == nil {
		return nil
	}
	c := *r
	c.ids = slices.Clone(r.ids)
	c.deferred, c.steps, c.questions, c.usage = slices.Clone(r.deferred), slices.Clone(r.steps), slices.Clone(r.questions), slices.Clone(r.usage)
	c.calls, c.used, c.jobs, c.said = maps.Clone(r.calls), maps.Clone(r.used), maps.Clone(r.jobs), maps.Clone(r.said)
	c.subs, c.texts, c.acts, c.plan = each(r.subs), each(r.texts), each(r.acts), r.plan.clone()
	for _, x := range c.texts {
		x.body = slices.Clone(x.body)
	}
	return &c
}

// each copies what the pointers point to.
func each[T any](list []*T) []*T {
	out := make([]*T, len(list))
	for i, p := range list {
		v := *p
		out[i] = &v
	}
	return out
}

// interrupts returns the open questions.
func (r *run) interrupts() []wire.Interrupt {
	var out []wire.Interrupt
	for _, q := range r.questions {
		if !q.Over {
			out = append(out, q.Interrupt)
		}
	}
	return out
}

// moves reports whether something of the run goes on without an answer of people.
func (r *run) moves() bool {
	if len(r.interrupts()) == 0 {
		return true
	}
	running := 0
	for _, j := range r.jobs {
		if j.inputs == nil {
			return true
		}
		if j.step != "" {
			running++
		}
	}
	return r.solving && running < r.limit && r.plan.due()
}

// answered notes that a question is over: jobs that wait for it go on if it was allowed, or if it was their last.
func (r *run) answered(id string, approved bool) {
	for name, j := range r.jobs {
		i := slices.Index(j.inputs, id)
		if i < 0 {
			continue
		}
		if j.inputs = slices.Delete(slices.Clone(j.inputs), i, i+1); approved || len(j.inputs) == 0 {
			j.inputs = nil
		}
		r.jobs[name] = j
	}
}

// rest ends the stretch if nothing moves but people.
func (r *run) rest(t *Thread) {
	if r.over || r.stretch == "" || r.moves() {
		return
	}
	ids := []string{}
	open := r.interrupts()
	for i := range open {
		ids = append(ids, open[i].ID)
		open[i].SubagentRunID = t.owner(open[i].SubagentRunID)
	}
	t.closeTexts("")
	for _, s := range slices.Backward(r.subs) {
		t.suspend(s, ids)
	}
	t.closeSteps()
	t.finish(&ending{boundary: &wire.Boundary{
		Base: t.stamped(wire.RunFinished, wire.Origin{}), Outcome: &wire.Outcome{Type: wire.OutcomeInterrupt, Interrupts: open}, Usage: r.usage,
	}})
}

// finish ends the stretch.
func (t *Thread) finish(e *ending) {
	r := t.run
	r.end = e
	t.emitFor(t.ended(), r.stretch, Everywhere, true)
	if t.past != nil {
		s := t.past.stretches[r.stretch]
		s.Ended = t.seq
		t.past.stretches[r.stretch] = s
	}
	r.stretch = ""
}

// ended returns the last frame of the newest stretch.
func (t *Thread) ended() any {
	e := t.run.end
	if e.failure != nil {
		return *e.failure
	}
	b := *e.boundary
	b.ThreadID, b.RunID = t.id, t.run.last
	return b
}

// begin begins a stretch. A stretch that has the id of another one gets another.
func (t *Thread) begin(id, parent string, input *wire.Input) {
	r := t.run
	for slices.Contains(r.ids, id) {
		id = following(id)
	}
	r.ids = append(r.ids, id)
	r.stretch, r.last, r.end = id, id, nil
	r.usage, r.used = nil, map[string]int{}
	if t.past != nil {
		t.past.stretches[id] = Stretch{Run: r.id, Begun: t.seq}
	}
	shown := Everywhere
	if input != nil && t.waiting[r.id].Queued > 0 {
		shown = ThreadStream
	}
	t.emitFor(t.started(id, parent, input), id, shown, false)
	for _, name := range r.steps {
		t.emit(wire.Step{Base: t.base(wire.StepStarted), StepName: name})
	}
	for _, s := range r.subs {
		t.announce(s)
	}
	for _, d := range r.deferred {
		t.answerShown(d.of)
	}
	r.deferred = nil
}

// following returns the id of the stretch that follows one with the id by itself: x, x~2, x~3.
func following(id string) string {
	for i := len(id) - 1; i > 0; i-- {
		if id[i] == '~' {
			if n, err := strconv.Atoi(id[i+1:]); err == nil {
				return id[:i+1] + strconv.Itoa(n+1)
			}
			break
		}
	}
	return id + "~2"
}

func (t *Thread) started(id, parent string, input *wire.Input) wire.Boundary {
	if t.mute {
		return wire.Boundary{}
	}
	if input != nil {
		input.ThreadID, input.RunID = t.id, id
	}
	return wire.Boundary{
		Base: t.base(wire.RunStarted), ThreadID: t.id, RunID: id, ProtocolVersion: wire.Version, ParentRunID: parent, Input: input,
	}
}

// ensure begins a stretch where a frame is due and none is open: something went on without an answer of people.
func (t *Thread) ensure() {
	if t.run != nil && !t.run.over && t.run.stretch == "" {
		t.begin(t.run.last, "", nil)
	}
}

func (t *Thread) closeSteps() {
	for _, name := range slices.Backward(t.run.steps) {
		t.emit(wire.Step{Base: t.base(wire.StepFinished), StepName: name})
	}
}

// step begins a step, unless it is open.
func (t *Thread) step(name string) {
	if !slices.Contains(t.run.steps, name) {
		t.run.steps = append(t.run.steps, name)
		t.emit(wire.Step{Base: t.base(wire.StepStarted), StepName: name})
	}
}

// stepped ends a step, if it is open.
func (t *Thread) stepped(name string) {
	if i := slices.Index(t.run.steps, name); i >= 0 {
		t.run.steps = slices.Delete(t.run.steps, i, i+1)
		t.emit(wire.Step{Base: t.base(wire.StepFinished), StepName: name})
	}
}
