package conversation

import (
	"slices"
	"time"
)

// queue holds the runs that a state keeps.
type queue struct {
	order    []*Run // as accepted
	byID     map[string]*Run
	lastExec string // the newest execution id
}

func (q *queue) add(r *Run) {
	q.byID[r.ID] = r
	q.order = append(q.order, r)
}

// active returns the active run, or nil.
func (q *queue) active() *Run {
	for _, r := range q.order {
		if r.Status == Running {
			return r
		}
	}
	return nil
}

// waiting returns the number of queued runs.
func (q *queue) waiting() int {
	n := 0
	for _, r := range q.order {
		if r.Status == Queued {
			n++
		}
	}
	return n
}

// next returns the oldest waiting run, or nil.
func (q *queue) next() *Run {
	for _, r := range q.order {
		if r.Status == Queued {
			return r
		}
	}
	return nil
}

// open returns the runs that have not ended.
func (q *queue) open() []*Run {
	var out []*Run
	for _, r := range q.order {
		if !r.Status.Terminal() {
			out = append(out, r)
		}
	}
	return out
}

// last returns the newest run, or nil.
func (q *queue) last() *Run {
	if len(q.order) == 0 {
		return nil
	}
	return q.order[len(q.order)-1]
}

// index returns the place of a run, which is mostly among the newest; -1 without it.
func (q *queue) index(runID string) int {
	for i, r := range slices.Backward(q.order) {
		if r.ID == runID {
			return i
		}
	}
	return -1
}

// execLayout is the time part of an execution id, down to microseconds.
const execLayout = "20060102_150405.000000"

// executionID is the time in the form exec_YYYYMMDD_HHMMSS_ffffff, moved on by
// microseconds until it is later than the session's last one: the form sorts by time.
func (q *queue) executionID(now time.Time) string {
	for at := now.UTC(); ; at = at.Add(time.Microsecond) {
		id := []byte("exec_" + at.Format(execLayout))
		id[len(id)-7] = '_'
		if string(id) > q.lastExec {
			return string(id)
		}
		if last, err := time.Parse(execLayout, dotted(q.lastExec)); err == nil && last.After(at) {
			at = last
		}
	}
}

func dotted(exec string) string {
	b := []byte(exec[len("exec_"):])
	b[len(b)-7] = '.'
	return string(b)
}
