// Package retry computes the delay before failed work is retried.
package retry

import (
	"hash/fnv"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// maxPause is the longest pause between two requests unless the provider requests a longer one.
// The clients of both vendors use the same.
const maxPause = 8 * time.Second

// RunMaxWait is the default for a whole run: a failed task is tried again after a job's
// requests have failed for half of it.
const RunMaxWait = time.Minute

// MaxWait bounds how often, and for how long, failed requests to the model are made
// again. Times count from the first of the requests that failed one after the other.
type MaxWait struct {
	Tries int           // requests for one message
	Pause time.Duration // before the second request; doubled before each further one
	Job   time.Duration // over the requests of one job
	Run   time.Duration // over all jobs of a run, tried again or not
}

// Outage sums up consecutive failed requests of a job. Its JSON form is part of stored states.
type Outage struct {
	Since time.Time // when the first of them was made; zero: the last one was answered
	Tries int       // number of failed requests
	Next  time.Time // when the next one is due
	Code  string    // of the newest failure
}

// Before returns the pause before another request, after so many requests that failed. The provider's wish, after, is never
// shortened. seed replaces randomness. ok is false if the requests are used up.
func (p MaxWait) Before(failed int, after time.Duration, seed string) (pause time.Duration, ok bool) {
	if failed >= p.Tries {
		return 0, false
	}
	pause = max(after, min(Backoff(p.Pause, failed, seed), max(maxPause, p.Pause)))
	return (pause + time.Millisecond - 1).Truncate(time.Millisecond), true // as the log has it
}

// Backoff returns the pause before the next attempt: doubled each time, and up to a tenth longer or
// shorter, so that jobs that failed together do not come back together. seed replaces
// randomness.
func Backoff(base time.Duration, attempt int, seed string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(seed))
	jitter := 0.9 + 0.2*float64(h.Sum32())/float64(1<<32)
	return time.Duration(float64(base<<min(attempt-1, 10)) * jitter)
}

// Transient reports whether a fault is one of a provider that may work again at once.
func Transient(code string) bool {
	switch fault.Code(code) {
	case fault.ModelFailed, fault.ModelBusy, fault.ModelRateLimited, fault.ModelCutOff:
		return true
	}
	return false
}
