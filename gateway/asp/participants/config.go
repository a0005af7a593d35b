package participants

import (
	"cmp"
	"fmt"
	"time"
)

// Defaults of Config.
const (
	// defaultGrace outlasts three attempts of the SDKs to come back (every 5 s).
	defaultGrace = 15 * time.Second
	// DefaultPing and defaultDead are what the protocol says: two pings may be
	// lost.
	DefaultPing = 15 * time.Second
	defaultDead = 45 * time.Second
	// defaultRate is ten tasks at once, each of which reports twenty times a second.
	defaultRate  = 200
	defaultBurst = 400
	// DefaultCalls is far more than one process runs at once.
	DefaultCalls = 256
	// defaultReadLimit is the largest message of the bus, and holds the results and the
	// data of tasks that the protocol's own server takes.
	defaultReadLimit = 1 << 20
	// maxReadLimit is below maxDrain, so that a frame beyond any limit can be skipped.
	maxReadLimit = maxDrain / 2
	// defaultLargeFrames of defaultReadLimit are 32 MiB, and some 200 MiB while all of
	// them are taken apart.
	defaultLargeFrames = 32
	// defaultAsks is the tools that one agent waits for outside of its tasks.
	defaultAsks = 32
)

// WithDefaults returns the settings with defaults for zero fields.
func (c Config) WithDefaults() Config {
	c.Grace = cmp.Or(c.Grace, defaultGrace)
	c.Ping = cmp.Or(c.Ping, DefaultPing)
	c.Dead = cmp.Or(c.Dead, defaultDead)
	c.Rate = cmp.Or(c.Rate, defaultRate)
	c.Burst = cmp.Or(c.Burst, defaultBurst)
	c.Calls = cmp.Or(c.Calls, DefaultCalls)
	c.Asks = cmp.Or(c.Asks, defaultAsks)
	c.ReadLimit = cmp.Or(c.ReadLimit, defaultReadLimit)
	c.LargeFrames = cmp.Or(c.LargeFrames, defaultLargeFrames)
	return c
}

// Check returns an error that names the option which cannot be used.
func (c Config) Check() error {
	for _, f := range []struct {
		name string
		bad  bool
	}{
		{"grace", c.Grace < 0},
		{"ping", c.Ping < 0},
		{"dead", c.Dead < 0},
		{"rate", c.Rate < 0},
		{"burst", c.Burst < 0},
		{"calls", c.Calls < 0},
		{"asks", c.Asks < 0},
		{"read_limit", c.ReadLimit < 0},
		{"large_frames", c.LargeFrames < 0},
	} {
		if f.bad {
			return fmt.Errorf("gateway.peers.%s must not be negative", f.name)
		}
	}
	if c.ReadLimit > maxReadLimit {
		return fmt.Errorf("gateway.peers.read_limit is %d; it may be %d at most", c.ReadLimit, maxReadLimit)
	}
	return nil
}
