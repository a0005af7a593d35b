package conversation

import (
	"encoding/json"
	"maps"
	"slices"
)

const (
	// windowBytes bounds the finished runs that a state keeps, as weigh counts them: more than the 256 KiB of conversation that
	// a model gets.
	windowBytes = 512 << 10
	// planBytes bounds the plan that a state keeps longer than that, so that people can restart its steps.
	planBytes = 128 << 10

	// Each part has ids and times besides its texts.
	runWeight     = 192
	messageWeight = 64
	answerWeight  = 512
)

// lost is what a state does not keep of its log.
type lost struct {
	Any  bool // ids of runs and calls that the log has may be unknown
	Runs int  // the oldest ones, since the state was restored from an export
}

// Keep sets how many bytes of finished runs the state keeps, all if negative. It comes before the first event.
func (s *State) Keep(bytes int) { s.keep = bytes }

// Thin has the state keep the newest finished run only, and the newest one with a plan, which people may still change. It
// is for a fold that is asked about jobs that go on.
func (s *State) Thin() { s.thin = true }

// Thinned returns a state of its own that knows what this one knows of jobs that go on, and is thin. It costs little, however
// long the log is.
func (s *State) Thinned() (*State, error) {
	c := *s
	c.order, c.runs, c.works, c.calls = slices.Clone(s.order), maps.Clone(s.runs), maps.Clone(s.works), maps.Clone(s.calls)
	c.inputs, c.asked, c.must = maps.Clone(s.inputs), maps.Clone(s.asked), maps.Clone(s.must)
	c.Thin()
	c.shrink()
	raw, err := c.Store() // the two go on apart: nothing is shared
	if err != nil {
		return nil, err
	}
	thin, err := Load(raw)
	if err != nil {
		return nil, err
	}
	thin.Thin()
	return thin, nil
}

// Forgot reports whether the state does not know all calls of the log.
func (s *State) Forgot() bool { return s.lost.Any }

// shrink forgets the oldest finished runs beyond the window. The newest one stays.
func (s *State) shrink() {
	if s.keep < 0 {
		return
	}
	limit, total, newest, planned := s.keep, bytesOf(s.history), (*Run)(nil), (*Run)(nil)
	if limit == 0 {
		limit = windowBytes
	}
	if s.thin {
		limit = 1
	}
	for _, r := range s.order {
		if s.thin && r.Pipeline != nil {
			planned = r
		}
		if r.Status.Terminal() {
			total, newest = total+r.weight, r
		}
	}
	if total > limit && len(s.history) > 0 {
		total -= bytesOf(s.history)
		s.history, s.lost.Any = nil, true
	}
	s.order = slices.DeleteFunc(s.order, func(r *Run) bool {
		if total <= limit || r == newest || r == planned || !r.Status.Terminal() {
			return false
		}
		total -= r.weight
		s.forget(r)
		return true
	})
}

// forget removes all of a finished run but the plan that people may still change.
func (s *State) forget(r *Run) {
	s.lost = lost{Any: true, Runs: s.lost.Runs + 1}
	if p := r.Pipeline; p != nil {
		s.asking, s.planned = orElse(p.Question, s.asking), nil
		if r.weight <= planBytes {
			s.planned = r.bare()
		}
	}
	delete(s.runs, r.ID)
	for _, w := range r.works {
		delete(s.works, w.ID)
		for _, m := range w.Messages {
			for _, tc := range m.ToolCalls {
				delete(s.must, tc.ID)
			}
		}
	}
	maps.DeleteFunc(s.calls, func(_ string, c *Call) bool { return c.RunID == r.ID })
	maps.DeleteFunc(s.inputs, func(_ string, in *Input) bool { return in.RunID == r.ID })
	maps.DeleteFunc(s.asked, func(_ string, in *Input) bool { return in.RunID == r.ID })
	if s.timed == r {
		s.timed = nil
	}
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
func (s *State) weigh(r *Run) int {
	n := runWeight + len(r.Content) + sizeOf(r.Spec) + sizeOf(r.Attachments) + answerWeight*len(r.questions)
	for _, w := range r.works {
		n += messageWeight + len(w.partial)
		for _, m := range w.Messages {
			n += messageWeight + len(m.Content) + m.PassBack.Size(m.Reasoning)
			for _, tc := range m.ToolCalls {
				n += messageWeight + 2*len(tc.Arguments)
				if c := s.calls[tc.ID]; c != nil {
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
