package conversation

import (
	"errors"
	"fmt"
	"maps"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation/usage"
)

// folds holds the effect of each event type on the state: the tables of the parts, joined.
var folds = joined(logFolds, runFolds, jobFolds, callFolds, planFolds, questionFolds)

// effect folds an event into a state.
type effect func(*State, event.Event) error

func joined(tables ...map[event.Type]effect) map[event.Type]effect {
	all := map[event.Type]effect{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// fold folds an event with data of one type into a part of a state.
type fold[T event.Data] func(*State, event.Event, T) error

// errForgotten ends the folding of an event about a part that the state may have forgotten.
var errForgotten = errors.New("forgotten")

// with decodes an event once, and folds it into one part after the other.
func with[T event.Data](parts ...fold[T]) effect {
	return func(s *State, e event.Event) error {
		d, err := eventdata.As[T](e)
		if err != nil {
			return err
		}
		s.init()
		for _, f := range parts {
			switch err := f(s, e, d); {
			case errors.Is(err, errForgotten):
				return nil
			case err != nil:
				return err
			}
		}
		return nil
	}
}

// at is the place of an event in a run.
type at struct {
	run  string
	part event.Part
}

// marked notes the event as the effect of a command.
func marked[T event.Data](s *State, e event.Event, _ T) error {
	s.known.add(e.ID)
	return nil
}

func onProfile[T event.Data](f func(*Profile, event.Event, T)) fold[T] {
	return func(s *State, e event.Event, d T) error {
		f(&s.Profile, e, d)
		return nil
	}
}

func onTotals[T event.Data](f func(*usage.Totals, T)) fold[T] {
	return func(s *State, _ event.Event, d T) error {
		f(&s.totals, d)
		return nil
	}
}

func onRun[T event.Data](f func(*Run, event.Event, T), run func(T) string) fold[T] {
	return func(s *State, e event.Event, d T) error {
		r, err := s.runOf(run(d))
		if err == nil {
			f(r, e, d)
		}
		return err
	}
}

// ends is onRun for an event that may end the run. The oldest runs may be forgotten then.
func ends[T event.Data](f func(*Run, event.Event, T) bool, run func(T) string) fold[T] {
	return func(s *State, e event.Event, d T) error {
		r, err := s.runOf(run(d))
		if err == nil && f(r, e, d) {
			r.Weight = r.weigh(s.calls)
			s.shrink()
		}
		return err
	}
}

func onJob[T event.Data](f func(*Job, event.Event, T), place func(T) at) fold[T] {
	return func(s *State, e event.Event, d T) error {
		p := place(d)
		id := p.part.Job(p.run)
		j := s.jobs[id]
		if j == nil {
			return s.unknown("job %q was never begun", id)
		}
		f(j, e, d)
		return nil
	}
}

func onCall[T event.Data](f func(*Call, T), call func(T) string) fold[T] {
	return func(s *State, _ event.Event, d T) error {
		c := s.calls.byID[call(d)]
		if c == nil {
			return s.unknown("tool call %q was never intended", call(d))
		}
		f(c, d)
		return nil
	}
}

func onPlan[T event.Data](f func(*Plan, event.Event, T), run func(T) string) fold[T] {
	return func(s *State, e event.Event, d T) error {
		p, err := s.planOf(run(d))
		if err == nil {
			f(p, e, d)
		}
		return err
	}
}

func onStep[T event.Data](f func(*Plan, *Step, event.Event, T), step func(T) (run, step string)) fold[T] {
	return func(s *State, e event.Event, d T) error {
		run, id := step(d)
		p, err := s.planOf(run)
		if err != nil {
			return err
		}
		t := p.Step(id)
		if t == nil {
			return noStep(run)
		}
		f(p, t, e, d)
		return nil
	}
}

// begins adds the job that the plan of a run begins.
func begins[T event.Data](f func(*Plan, event.Event, T) *Job, run func(T) string) fold[T] {
	return func(s *State, e event.Event, d T) error {
		p, err := s.planOf(run(d))
		if err != nil {
			return err
		}
		j := f(p, e, d)
		if j == nil {
			return noStep(run(d))
		}
		s.jobs.begin(j, s.Run(run(d)))
		return nil
	}
}

func noStep(run string) error { return fmt.Errorf("the step is in no plan of run %q", run) }
