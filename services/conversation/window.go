package conversation

import (
	"maps"
	"slices"
)

// windowBytes bounds the finished runs that a state keeps, as weigh counts them: more than the 256 KiB of conversation that
// a model gets.
const windowBytes = 512 << 10

// planBytes bounds the plan that a state keeps longer than that, so that people can restart its steps.
const planBytes = 128 << 10

// lost is what a state does not keep of its log.
type lost struct {
	Any  bool // ids of runs and calls that the log has may be unknown
	Runs int  // the oldest ones, since the state was restored from an export
}

// window is which finished runs a state keeps, and what it remembers of those that it has forgotten.
type window struct {
	Keep    int // see State.Keep
	Lost    lost
	Planned *Run   // the newest planned run, if it is forgotten: see Run.bare
	Asking  string // the newest question of the planned runs that are forgotten

	thin bool // see State.Thin
}

// limit returns how many bytes of finished runs are kept; negative: all.
func (w *window) limit() int {
	switch {
	case w.Keep < 0:
		return -1
	case w.thin:
		return 1
	case w.Keep == 0:
		return windowBytes
	}
	return w.Keep
}

// forget keeps of a run that is forgotten only the plan that people may still change.
func (w *window) forget(r *Run) {
	w.Lost = lost{Any: true, Runs: w.Lost.Runs + 1}
	if p := r.Plan; p != nil {
		w.Asking, w.Planned = orElse(p.Question, w.Asking), nil
		if r.Weight <= planBytes {
			w.Planned = r.bare()
		}
	}
}

// Keep sets how many bytes of finished runs the state keeps, all if negative. It comes before the first event.
func (s *State) Keep(bytes int) { s.window.Keep = bytes }

// Thin has the state keep only the newest finished run, and the newest planned one, which people may still change. Workers
// need no more.
func (s *State) Thin() { s.window.thin = true }

// Forgot reports whether the state does not know all calls of the log.
func (s *State) Forgot() bool { return s.window.Lost.Any }

// Thinned returns a thin state that shares nothing with this one and knows all about unfinished jobs. Its cost does not depend
// on the length of the log.
func (s *State) Thinned() (*State, error) {
	c := *s
	c.queue.order, c.queue.byID, c.jobs = slices.Clone(s.queue.order), maps.Clone(s.queue.byID), maps.Clone(s.jobs)
	c.calls = calls{byID: maps.Clone(s.calls.byID), must: maps.Clone(s.calls.must)}
	c.questions = questions{byID: maps.Clone(s.questions.byID), byCall: maps.Clone(s.questions.byCall)}
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

// shrink forgets the oldest finished runs beyond the window. The newest one stays.
func (s *State) shrink() {
	limit := s.window.limit()
	if limit < 0 {
		return
	}
	total, newest, planned := bytesOf(s.history), (*Run)(nil), (*Run)(nil)
	for _, r := range s.queue.order {
		if s.window.thin && r.Plan != nil {
			planned = r
		}
		if r.Status.Terminal() {
			total, newest = total+r.Weight, r
		}
	}
	if total > limit && len(s.history) > 0 {
		total -= bytesOf(s.history)
		s.history, s.window.Lost.Any = nil, true
	}
	s.queue.order = slices.DeleteFunc(s.queue.order, func(r *Run) bool {
		if total <= limit || r == newest || r == planned || !r.Status.Terminal() {
			return false
		}
		total -= r.Weight
		s.forget(r)
		return true
	})
}

// forget removes all of a finished run but what the window remembers.
func (s *State) forget(r *Run) {
	s.window.forget(r)
	delete(s.queue.byID, r.ID)
	s.jobs.forget(r)
	s.calls.forget(r)
	s.questions.forget(r)
	if s.meter.timed == r {
		s.meter.timed = nil
	}
}
