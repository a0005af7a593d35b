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
	// clockInterval is the interval between requests for the bus' time. Between two answers the monotonic clock
	// counts. It drifts by 30 ms in ten minutes on ordinary machines, and misses the time for which a virtual machine
	// is suspended.
	clockInterval = time.Minute
	// clockTry bounds one request, which takes milliseconds.
	clockTry = 5 * time.Second
)

// Clock is the time of the bus, the same for every process. Processes set and check deadlines with this one clock, so
// that wrong or adjusted clocks of their machines do not matter. It continues while the bus is away.
type Clock struct {
	conn    *Conn
	streams []string
	anchor  time.Time    // only its monotonic part is read
	base    atomic.Int64 // the bus' time at the anchor, in nanoseconds
	end     context.CancelFunc
	wg      sync.WaitGroup
}

// NewClock asks the leaders of the streams for their time. It returns when they have answered, or with the error of
// ctx. It asks again every minute until Close.
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

// Close ends the requests; Now continues to work.
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
			c.conn.log.Debug().Err(err).Msg("failed to read NATS time; last known offset stays in use")
		}
	}
}

// measure asks every leader once and stores the time that most of them agree on.
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

// ask returns the leader of a stream and its time at the anchor.
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

// agreed returns the median. For an even number of times it returns the middle time that is nearer to the previous
// one. So one server with a wrong clock changes nothing, and of two servers the one that has not changed counts.
func agreed(bases []int64, before int64) int64 {
	slices.Sort(bases)
	n := len(bases)
	low, high := bases[(n-1)/2], bases[n/2]
	if before-low < high-before {
		return low
	}
	return high
}
