package newest

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// fresh is how long a count holds, and each how much longer for each message: the server visits all subjects of a filter, 80
	// ns each, for a fiftieth of the time at most.
	fresh = time.Second
	each  = 4 * time.Microsecond
	// many is the number of messages from which on a reader gets the last count, up to stale later, and does not wait for a new one (2 ms).
	many  = 25_000
	stale = time.Minute
	// renewal bounds a count for which no reader waits.
	renewal = 10 * time.Second
	// maxCounts bounds the filters whose counts are kept, some 200 bytes each.
	maxCounts = 1024
)

// census is what is known about all messages of a filter.
type census struct {
	total  int
	first  uint64 // sequence of the oldest one, or of one that is gone since
	at     time.Time
	stream time.Time // when the stream was made; zero: not known
}

// Counts keeps the counts of the filters that were asked for last. It is safe for concurrent use.
type Counts struct {
	mu       sync.Mutex
	recent   *simplelru.LRU[string, census]
	renewing map[string]struct{} // filters that are counted anew, while their last counts are shown
}

// NewCounts returns Counts without a count.
func NewCounts() *Counts {
	recent, err := simplelru.NewLRU[string, census](maxCounts, nil)
	if err != nil { // only for a size below 1
		panic(err)
	}
	return &Counts{recent: recent, renewing: map[string]struct{}{}}
}

// of returns the count of a filter in the stream, whose zero time stands for any: the last one as long as it holds, otherwise a new one.
// A large one that no longer holds is still shown, and counted anew meanwhile.
func (c *Counts) of(ctx context.Context, filter string, stream time.Time, count func(context.Context) (census, error)) (census, error) {
	known, shown, renew := c.last(filter, stream, time.Now())
	if !shown {
		return c.anew(ctx, filter, stream, count)
	}
	if renew {
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewal)
			defer cancel()
			_, _ = c.anew(ctx, filter, stream, count) // after an error the next reader tries
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.renewing, filter)
		}()
	}
	return known, nil
}

// last returns the last count of a filter, whether it can be shown now, and whether the caller has to count anew besides.
func (c *Counts) last(filter string, stream, now time.Time) (known census, shown, renew bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, shown = c.recent.Get(filter)
	if shown = shown && (stream.IsZero() || stream.Equal(known.stream)); !shown {
		return known, false, false
	}
	age := now.Sub(known.at)
	if age < fresh+time.Duration(known.total)*each {
		return known, true, false
	}
	if known.total < many || age >= stale {
		return known, false, false
	}
	_, busy := c.renewing[filter]
	c.renewing[filter] = struct{}{}
	return known, true, !busy
}

// anew counts the messages of a filter. A filter without messages is not kept: its first one shows at once.
func (c *Counts) anew(ctx context.Context, filter string, stream time.Time, count func(context.Context) (census, error)) (census, error) {
	at := time.Now()
	out, err := count(ctx)
	if err != nil {
		return out, err
	}
	out.at, out.stream = at, stream
	c.mu.Lock()
	defer c.mu.Unlock()
	if out.total == 0 {
		c.recent.Remove(filter)
	} else {
		c.recent.Add(filter, out)
	}
	return out, nil
}
