package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// clockInterval is how often the bus is asked for its time. Between two answers the
	// monotonic clock counts, which is wrong by 30 ms in ten minutes on ordinary
	// machines, and says nothing of the time for which a virtual machine is suspended.
	clockInterval = time.Minute
	// clockTry bounds one question, which takes milliseconds.
	clockTry = 5 * time.Second
)

// Clock is the time as the bus has it, the same for every process: a deadline that one
// process sets and another looks at is measured with one clock, whatever the clocks of
// their machines say and however they are set meanwhile. It goes on when the bus is away.
type Clock struct {
	conn    *Conn
	streams []string
	anchor  time.Time    // with its monotonic part, which is all that is read of it
	base    atomic.Int64 // the bus' time at the anchor, in nanoseconds
	end     context.CancelFunc
	wg      sync.WaitGroup
}

// NewClock asks the leaders of the streams for their time, and returns when they have
// answered or with the error of ctx. It asks again every minute until Close.
func NewClock(ctx context.Context, conn *Conn, streams ...string) (*Clock, error) {
	if len(streams) == 0 {
		return nil, errors.New("the time of the bus: no stream to ask")
	}
	c := &Clock{conn: conn, streams: streams, anchor: time.Now()}
	c.base.Store(c.anchor.UnixNano())
	for {
		err := c.measure(ctx)
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the time of the bus: %w: %w", context.Cause(ctx), err)
		case <-time.After(persistPause):
		}
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	c.end = end
	c.wg.Go(func() { c.keep(life) })
	return c, nil
}

// Now returns the bus' time, in UTC. It is safe for concurrent use.
func (c *Clock) Now() time.Time {
	return time.Unix(0, c.base.Load()).Add(time.Since(c.anchor)).UTC()
}

// Close ends the questions; Now goes on.
func (c *Clock) Close() {
	c.end()
	c.wg.Wait()
}

func (c *Clock) keep(ctx context.Context) {
	tick := time.NewTicker(clockInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := c.measure(ctx); err != nil && ctx.Err() == nil {
			c.conn.log.Debug().Err(err).Msg("keep last known time of bus")
		}
	}
}

// measure asks every leader once, and takes what most of them agree on.
func (c *Clock) measure(ctx context.Context) error {
	bases := map[string]int64{}
	var last error
	for _, name := range c.streams {
		leader, base, err := c.ask(ctx, name)
		if err != nil {
			last = err
			continue
		}
		bases[leader] = base
	}
	if len(bases) == 0 {
		return last
	}
	all := make([]int64, 0, len(bases))
	for _, base := range bases {
		all = append(all, base)
	}
	c.base.Store(agreed(all, c.base.Load()))
	return nil
}

// ask returns which server answers for a stream, and what time it was there at the anchor.
func (c *Clock) ask(ctx context.Context, stream string) (leader string, base int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, clockTry)
	defer cancel()
	before := time.Now()
	s, err := c.conn.js.Stream(ctx, stream)
	if err != nil {
		return "", 0, err
	}
	way := time.Since(before) / 2
	i := s.CachedInfo()
	if i.TimeStamp.IsZero() {
		return "", 0, fmt.Errorf("the answer about %s has no time", stream)
	}
	if i.Cluster != nil {
		leader = i.Cluster.Leader
	}
	return leader, i.TimeStamp.Add(way - time.Since(c.anchor)).UnixNano(), nil
}

// agreed returns the median. Of an even number of times it is the one of the two in the
// middle that is nearer to what was believed so far: so one server whose clock is wrong
// changes nothing, and of two the one that has not changed its mind is believed.
func agreed(bases []int64, before int64) int64 {
	slices.Sort(bases)
	n := len(bases)
	low, high := bases[(n-1)/2], bases[n/2]
	if before-low < high-before {
		return low
	}
	return high
}
