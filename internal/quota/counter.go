package quota

import (
	"context"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// retryPause spaces the tries of a write that the bus did not accept.
	retryPause = time.Second
	// closeMaxWait bounds the time in which Close returns the remaining holdings: unreturned ones count until other
	// processes miss their holder.
	closeMaxWait = 2 * time.Second
)

// caps are the limits of an admission; 0 = unlimited.
type caps struct{ tenant, principal int64 }

// asking is a request for more of a resource.
type asking struct {
	n     int64
	caps  caps
	done  chan verdict // has room for one
	taken bool         // a write for it is in progress
	left  bool         // its caller has stopped waiting
}

type verdict struct {
	sums Sums // as of the write
	over bool // refused
	err  error
}

// slot is one key that this process writes.
type slot struct {
	q       subject.Quota
	have    int64
	asking  []*asking
	writing bool
	dirty   bool // the key may differ from have
}

// counter counts the holdings of this process, one key per principal. Requests that arrive while a key is being
// written wait, and the next write admits them together.
type counter struct {
	ledger *Ledger
	over   func(subject.Quota) bool // reports that a holding has stopped counting permanently
	life   context.Context          //nolint:containedctx // the life of the counter, ended by close
	end    context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	slots  map[subject.Quota]*slot
	closed bool
}

func newCounter(l *Ledger, over func(subject.Quota) bool) *counter {
	c := &counter{ledger: l, over: over, slots: map[subject.Quota]*slot{}}
	c.life, c.end = context.WithCancel(context.Background())
	l.mu.Lock()
	l.echo = c.echoed
	l.mu.Unlock()
	return c
}

// acquire takes n more, within the limits. It returns the decision, or an error when ctx ends; then it has taken
// nothing.
func (c *counter) acquire(ctx context.Context, q subject.Quota, n int64, limits caps) verdict {
	a := &asking{n: n, caps: limits, done: make(chan verdict, 1)}
	c.mu.Lock()
	s := c.slot(q)
	s.asking = append(s.asking, a)
	c.wake(s)
	c.mu.Unlock()
	select {
	case v := <-a.done:
		return v
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case v := <-a.done: // decided meanwhile
		if v.err == nil && !v.over {
			s.have -= n
			s.dirty = true
			c.wake(s)
		}
	default:
		a.left = true
	}
	return verdict{err: unavailable(context.Cause(ctx))}
}

// release returns n. It does not wait.
func (c *counter) release(q subject.Quota, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slots[q]
	if s == nil {
		return
	}
	s.have = max(s.have-n, 0)
	s.dirty = true
	c.wake(s)
}

func (c *counter) slot(q subject.Quota) *slot {
	s := c.slots[q]
	if s == nil {
		s = &slot{q: q}
		c.slots[q] = s
	}
	return s
}

// wake starts a write of the slot, unless one is in progress.
func (c *counter) wake(s *slot) {
	if s.writing || c.closed && c.life.Err() != nil {
		return
	}
	s.writing = true
	c.wg.Go(func() { c.write(s) })
}

// echoed receives the stored value of a key. It rewrites a value that another process changed because it presumed
// this one dead, and deletes the slot of a key whose holding is over.
func (c *counter) echoed(q subject.Quota, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slots[q]
	switch {
	case s == nil || s.writing || s.have == n:
	case n == 0 && c.over(q):
		delete(c.slots, q)
	default:
		s.dirty = true
		c.wake(s)
	}
}

// write writes the slot until the key matches have and the queue is empty.
func (c *counter) write(s *slot) {
	for {
		batch, target, ok := c.take(s)
		if !ok {
			return
		}
		sums, err := c.ledger.Set(c.life, s.q, target)
		c.settle(s, batch, sums, err)
		if err == nil {
			continue
		}
		select {
		case <-c.life.Done():
			c.give(s)
			return
		case <-time.After(retryPause):
		}
	}
}

// take returns the waiting requests and the value to write; false if the slot is up to date.
func (c *counter) take(s *slot) (batch []*asking, target int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	target = s.have
	for _, a := range s.asking {
		if !a.left {
			a.taken = true
			target += a.n
			batch = append(batch, a)
		}
	}
	s.asking = nil
	if len(batch) == 0 && !s.dirty {
		s.writing = false
		if s.have == 0 {
			delete(c.slots, s.q)
		}
		return nil, 0, false
	}
	s.dirty = false
	return batch, target, true
}

// settle answers the requests of a batch. It refuses the last ones first.
func (c *counter) settle(s *slot, batch []*asking, sums Sums, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		s.dirty = true
	}
	refused := int64(0) // by later requests, which do not count against earlier ones
	for i := len(batch) - 1; i >= 0; i-- {
		a := batch[i]
		v := verdict{err: err, sums: Sums{sums.Tenant - refused, sums.Principal - refused}}
		v.over = err == nil && (a.caps.tenant > 0 && v.sums.Tenant > a.caps.tenant || a.caps.principal > 0 && v.sums.Principal > a.caps.principal)
		switch {
		case err != nil:
		case v.over, a.left:
			refused += a.n
			s.dirty = true
		default:
			s.have += a.n
		}
		a.done <- v
	}
}

// give fails the requests of a slot after its last write.
func (c *counter) give(s *slot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.writing = false
	for _, a := range s.asking {
		a.done <- verdict{err: unavailable(context.Cause(c.life))}
	}
	s.asking = nil
}

// close returns the remaining holdings if giveBack is set, within 2 s, and ends.
func (c *counter) close(giveBack bool) {
	c.mu.Lock()
	c.closed = true
	for _, s := range c.slots {
		if giveBack && s.have > 0 {
			s.have, s.dirty = 0, true
			c.wake(s)
		}
	}
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.wg.Wait()
	}()
	late := time.AfterFunc(closeMaxWait, c.end)
	defer late.Stop()
	<-done
	c.end()
}
