package quota

import (
	"context"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// retryPause is between two tries of a write that the bus did not take.
	retryPause = time.Second
	// closePatience bounds how long Close gives back what is left: what stays counts until
	// its holder is missed.
	closePatience = 2 * time.Second
)

// caps are the limits of an admission; 0 = none.
type caps struct{ tenant, principal int64 }

// asking is somebody who wants more.
type asking struct {
	n     int64
	caps  caps
	done  chan verdict // of one
	taken bool         // a write is on for it
	left  bool         // it waits no more
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
	dirty   bool // the key may not say what we have
}

// counter counts what this process holds, one key for each principal. While a key is
// being written those who want more of it wait, and are admitted by the next write
// together.
type counter struct {
	ledger *Ledger
	over   func(subject.Quota) bool // what is held does not count any more, for good
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

// acquire takes n more, if the limits allow that. It returns when that is decided, or
// when ctx ends; then nothing was taken.
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

// release gives n back. It does not wait.
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

// wake has the slot written, unless that is going on.
func (c *counter) wake(s *slot) {
	if s.writing || c.closed && c.life.Err() != nil {
		return
	}
	s.writing = true
	c.wg.Go(func() { c.write(s) })
}

// echoed is told what a key says. One of ours that says something else, because somebody
// took us for dead, is put right; one that was forgotten because it is over we forget, too.
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

// write writes the slot until the key says what we have and nobody wants more.
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

// take returns who wants more, and what the key is to say; false if there is nothing to do.
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

// settle tells those of a batch what has become of it. Who comes last is refused first.
func (c *counter) settle(s *slot, batch []*asking, sums Sums, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		s.dirty = true
	}
	refused := int64(0) // of those behind, whom nobody has to make room for
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

// give ends a slot that is not written any more.
func (c *counter) give(s *slot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.writing = false
	for _, a := range s.asking {
		a.done <- verdict{err: unavailable(context.Cause(c.life))}
	}
	s.asking = nil
}

// close gives back what is left, if giveBack, within 2 s, and ends.
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
	late := time.AfterFunc(closePatience, c.end)
	defer late.Stop()
	<-done
	c.end()
}
