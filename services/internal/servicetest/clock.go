package servicetest

import (
	"sync"
	"time"
)

// Clock is a clock that a test moves. It is safe for concurrent use; the zero value shows the time.
type Clock struct {
	mu  sync.Mutex
	off time.Duration
}

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off)
}

// Move puts the clock forward, or back.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += d
}
