package limit

import (
	"time"

	"golang.org/x/time/rate"
)

// grace is how far a peer may be ahead of its rate before it is slowed down as well
// as refused.
const grace = time.Second

// Frames bounds how fast one peer may send. It is used by one goroutine.
//
// A frame over the rate is refused and the peer is told so. One that goes on
// regardless is read no faster than the rate allows, so that what it can make us do
// is bounded.
type Frames struct{ l *rate.Limiter }

// NewFrames returns a bound of perSecond frames with burst at once.
func NewFrames(perSecond float64, burst int) *Frames {
	return &Frames{rate.NewLimiter(rate.Limit(perSecond), max(burst, 1))}
}

// Take counts one frame at the time now. ok says that it is within the rate; wait
// says how long not to read on.
func (f *Frames) Take(now time.Time) (ok bool, wait time.Duration) {
	r := f.l.ReserveN(now, 1)
	ahead := r.DelayFrom(now)
	return ahead == 0, max(0, ahead-grace)
}
