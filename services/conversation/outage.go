package conversation

import (
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// maxPause is the longest pause between two requests unless the provider requests a longer one.
// The clients of both vendors use the same.
const maxPause = 8 * time.Second

// RunPatience is the default for a whole run: a failed task is tried again after a job's
// requests have failed for half of it.
const RunPatience = time.Minute

// Patience bounds how often, and for how long, failed requests to the model are made
// again. Times count from the first of the requests that failed one after the other.
type Patience struct {
	Tries int           // requests for one message
	Pause time.Duration // before the second request; doubled before each further one
	Job   time.Duration // over the requests of one job
	Run   time.Duration // over all jobs of a run, tried again or not
}

// Outage sums up consecutive failed requests of a job.
type Outage struct {
	Since time.Time // when the first of them was made; zero: the last one was answered
	Tries int       // number of failed requests
	Next  time.Time // when the next one is due
}

// Retry returns the pause before a job's failed request is repeated. ok is false if it is not
// repeated, because the time for retries is used up or would be before then. The provider's wish, after, is
// never shortened.
func (s *State) Retry(workID string, now time.Time, after time.Duration, p Patience) (pause time.Duration, ok bool) {
	w := s.Work(workID)
	if w == nil || w.Outage.Tries+1 >= p.Tries {
		return 0, false
	}
	pause = max(after, min(backoff(p.Pause, w.Outage.Tries+1, w.ID+w.asked.String()), max(maxPause, p.Pause)))
	pause = (pause + time.Millisecond - 1).Truncate(time.Millisecond) // as the log has it
	due := now.Add(pause)
	if due.Sub(earliest(w.Outage.Since, w.asked)) > p.Job {
		return 0, false
	}
	r := s.runs[w.RunID]
	return pause, r == nil || !r.exhausted(due, w.asked, p.Run)
}

// exhausted reports whether a request at the time due would exceed the limit for a run without an
// answer of the model. 0 = unlimited.
func (r *Run) exhausted(due, asked time.Time, limit time.Duration) bool {
	since := earliest(r.failing, asked)
	return limit > 0 && !since.IsZero() && due.Sub(since) > limit
}

// earliest returns first, or otherwise if that is zero.
func earliest(first, otherwise time.Time) time.Time {
	if first.IsZero() {
		return otherwise
	}
	return first
}

// isTransient reports whether a fault is one of a provider that may work again at once.
func isTransient(code string) bool {
	switch fault.Code(code) {
	case fault.ModelFailed, fault.ModelBusy, fault.ModelCutOff:
		return true
	}
	return false
}

func (s *State) requestFailed(e event.Event, d event.RequestFailedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		s.outage(w, e.Time)
		w.Outage.Since = earliest(w.Outage.Since, earliest(w.asked, e.Time))
		w.Outage.Tries, w.Outage.Next = d.Try, e.Time.Add(time.Duration(d.RetryAfterMS)*time.Millisecond)
	})
}

// outage notes that a request of the job has failed.
func (s *State) outage(w *Work, now time.Time) {
	if r := s.runs[w.RunID]; r != nil {
		r.failing = earliest(r.failing, earliest(w.asked, now))
	}
}

// recovered notes that the model has answered.
func (s *State) recovered(w *Work) {
	w.Outage = Outage{}
	if r := s.runs[w.RunID]; r != nil {
		r.failing = time.Time{}
	}
}
