package conversation

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation/marks"
	"github.com/waggle-dev/waggle/services/conversation/usage"
)

// FoldVersion is the version of the fold. It changes whenever the fold of a log changes (a test checks it); stored states of other
// versions are ignored.
const FoldVersion = 4

// errStored is wrapped by the errors of Load: the log has to be folded from its beginning.
var errStored = errors.New("no stored state of this fold")

// stored is a State as JSON without what is zero, which is a quarter of a long chat. Members that refer to another part hold its id.
type stored struct {
	Version int
	State
	Runs     []storedRun
	Calls    []storedCall
	Must     []string
	Known    []byte
	Refusals []event.MessageRefusedData
	History  []Line
	LastExec string
	Totals   usage.Totals
	Timed    string
	Clock    string
	Keep     int
	Lost     lost
	Planned  *storedRun
	Asking   string
}

type storedRun struct {
	Run
	Pipeline  *storedPipeline
	Works     []storedWork
	Inputs    []storedInput // all of the run that can be answered
	Questions []string
	Failing   time.Time
	Worked    time.Duration
	Busy      bool
	Latest    time.Time
	Ahead     map[string]time.Duration
	Weight    int
}

type storedWork struct {
	Work
	Worker  string
	Pause   string
	Rested  int
	Asked   time.Time
	Said    int
	Begun   bool
	Partial []byte
	Thought thought
	Tally   usage.Tally
}

type storedPipeline struct {
	Pipeline
	Context          string
	Tasks            []storedTask
	Job              string
	Input            string
	Restored         *storedInput // an input without an id
	Retries          int
	PlanStarted      time.Time
	PlanEnded        time.Time
	SolveStarted     time.Time
	SolveEnded       time.Time
	AggregateStarted time.Time
	AggregateEnded   time.Time
}

type storedTask struct {
	Task
	Work string
}

// storedCall keeps the arguments as they are, also if they are nil.
type storedCall struct {
	Call
	Arguments string
}

type storedInput struct {
	Input
	Quota    *event.QuotaUse
	Resource string
}

// Store returns the state so that Load gives the same again. The same state gives the same bytes.
func (s *State) Store() ([]byte, error) {
	out := stored{
		Version: FoldVersion, State: *s, Known: s.known.Encode(), Refusals: s.known.refusals, History: s.history, LastExec: s.queue.lastExec, Clock: s.meter.clock, Keep: s.window.keep,
		Must: slices.Sorted(maps.Keys(s.calls.must)), Lost: s.window.lost, Asking: s.window.asking, Totals: s.totals,
	}
	for _, id := range slices.Sorted(maps.Keys(s.calls.byID)) {
		out.Calls = append(out.Calls, storedCall{*s.calls.byID[id], string(s.calls.byID[id].Arguments)})
	}
	inputs := map[string][]*Input{}
	for _, in := range s.questions.byID {
		inputs[in.RunID] = append(inputs[in.RunID], in)
	}
	for _, r := range s.queue.order {
		out.Runs = append(out.Runs, r.store(inputs[r.ID]))
	}
	if s.window.planned != nil {
		r := s.window.planned.store(nil)
		out.Planned = &r
	}
	if s.meter.timed != nil {
		out.Timed = s.meter.timed.ID
	}
	raw, err := eventdata.Sparse(out)
	if err != nil {
		return nil, fmt.Errorf("store the state of a conversation: %w", err)
	}
	return raw, nil
}

func (r *Run) store(inputs []*Input) storedRun {
	out := storedRun{
		Run: *r, Failing: r.failing, Worked: r.worked, Busy: r.clocks.on, Latest: r.clocks.latest, Ahead: r.clocks.ahead, Weight: r.weight,
	}
	for _, w := range r.works {
		out.Works = append(out.Works, storedWork{
			Work: *w, Worker: w.worker, Pause: w.pause, Rested: w.rested, Asked: w.asked, Said: w.said, Begun: w.begun, Partial: w.partial, Thought: w.thought, Tally: w.tally,
		})
	}
	slices.SortFunc(inputs, func(a, b *Input) int { return strings.Compare(a.ID, b.ID) })
	for _, in := range inputs {
		out.Inputs = append(out.Inputs, in.store())
	}
	for _, in := range r.questions {
		out.Questions = append(out.Questions, in.ID)
	}
	if p := r.Pipeline; p != nil {
		out.Pipeline = p.store()
	}
	return out
}

func (p *Pipeline) store() *storedPipeline {
	out := &storedPipeline{
		Pipeline: *p, Context: string(p.Context), Job: p.Job.id(), Retries: p.retries, PlanStarted: p.planStarted, PlanEnded: p.planEnded, SolveStarted: p.solveStarted,
		SolveEnded: p.solveEnded, AggregateStarted: p.aggregateBegan, AggregateEnded: p.aggregateEnded,
	}
	for _, t := range p.Tasks {
		out.Tasks = append(out.Tasks, storedTask{Task: *t, Work: t.Work.id()})
	}
	switch in := p.Input; {
	case in == nil:
	case in.ID != "":
		out.Input = in.ID
	default:
		one := in.store()
		out.Restored = &one
	}
	return out
}

func rawOf(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

func (in *Input) store() storedInput {
	return storedInput{Input: *in, Quota: in.quota, Resource: in.resource}
}

func (in storedInput) load() *Input {
	out := in.Input
	out.quota, out.resource = in.Quota, in.Resource
	return &out
}

// Load returns the state that Store was called with, or an error if the log has to be folded from its beginning.
func Load(raw []byte) (*State, error) {
	var in stored
	if err := eventdata.FromSparse(raw, &in); err != nil {
		return nil, fmt.Errorf("%w: %w", errStored, err)
	}
	if in.Version != FoldVersion {
		return nil, fmt.Errorf("%w: it is of version %d, the fold of version %d", errStored, in.Version, FoldVersion)
	}
	s := in.State
	if err := in.load(&s); err != nil {
		return nil, fmt.Errorf("%w: %w", errStored, err)
	}
	return &s, nil
}

func (in *stored) load(s *State) (err error) {
	s.init()
	if s.known.Set, err = marks.Decode(in.Known); err != nil {
		return err
	}
	s.known.refusals, s.history, s.queue.lastExec, s.meter.clock, s.window.keep, s.window.lost, s.window.asking = in.Refusals, in.History, in.LastExec, in.Clock, in.Keep, in.Lost, in.Asking
	s.totals = in.Totals
	for _, call := range in.Must {
		s.calls.must[call] = true
	}
	for _, one := range in.Calls {
		c := one.Call
		c.Arguments = rawOf(one.Arguments)
		s.calls.byID[c.ID] = &c
	}
	for i := range in.Runs {
		r, err := in.Runs[i].load(s)
		if err != nil {
			return err
		}
		s.queue.add(r)
	}
	if in.Planned != nil {
		if s.window.planned, err = in.Planned.load(s); err != nil {
			return err
		}
	}
	if in.Timed == "" {
		return nil
	}
	if s.meter.timed = s.queue.byID[in.Timed]; s.meter.timed == nil {
		return fmt.Errorf("it lacks the run %q", in.Timed)
	}
	return nil
}

func (in *storedRun) load(s *State) (*Run, error) {
	r := in.Run
	r.failing, r.worked, r.weight = in.Failing, in.Worked, in.Weight
	r.clocks = clocks{on: in.Busy, latest: in.Latest, ahead: in.Ahead}
	for i := range in.Works {
		one := &in.Works[i]
		w := one.Work
		w.worker, w.pause, w.rested, w.asked, w.said, w.begun = one.Worker, one.Pause, one.Rested, one.Asked, one.Said, one.Begun
		w.thought = one.Thought
		w.partial, w.tally = one.Partial, one.Tally
		s.jobs.begin(&w, &r)
	}
	for i := range in.Inputs {
		q := in.Inputs[i].load()
		s.questions.add(q)
	}
	for _, id := range in.Questions {
		q := s.questions.byID[id]
		if q == nil {
			return nil, fmt.Errorf("it lacks the question %q", id)
		}
		r.ask(q)
	}
	if in.Pipeline == nil {
		return &r, nil
	}
	var err error
	r.Pipeline, err = in.Pipeline.load(s)
	return &r, err
}

func (in *storedPipeline) load(s *State) (*Pipeline, error) {
	p := in.Pipeline
	p.Context, p.Tasks, p.Job, p.Input = rawOf(in.Context), nil, nil, nil
	p.retries, p.planStarted, p.planEnded, p.solveStarted, p.solveEnded = in.Retries, in.PlanStarted, in.PlanEnded, in.SolveStarted, in.SolveEnded
	p.aggregateBegan, p.aggregateEnded = in.AggregateStarted, in.AggregateEnded
	var err error
	if p.Job, err = s.jobs.stored(in.Job); err != nil {
		return nil, err
	}
	for i := range in.Tasks {
		t := in.Tasks[i].Task
		if t.Work, err = s.jobs.stored(in.Tasks[i].Work); err != nil {
			return nil, err
		}
		p.Tasks = append(p.Tasks, &t)
	}
	switch {
	case in.Restored != nil:
		p.Input = in.Restored.load()
	case in.Input != "":
		if p.Input = s.questions.byID[in.Input]; p.Input == nil {
			return nil, fmt.Errorf("it lacks the question %q", in.Input)
		}
	}
	return &p, nil
}

// stored returns the job with the id, nil without one.
func (j jobs) stored(id string) (*Work, error) {
	w := j[id]
	if w == nil && id != "" {
		return nil, fmt.Errorf("it lacks the job %q", id)
	}
	return w, nil
}
