package gateway

import (
	"errors"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/internal/auth"
)

// Defaults of PeerConfig.
const (
	// defaultPeerGrace outlasts three attempts of the SDKs to come back (every 5 s).
	defaultPeerGrace = 15 * time.Second
	// DefaultPeerPing and defaultPeerDead are what the protocol says: two pings may be
	// lost.
	DefaultPeerPing = 15 * time.Second
	defaultPeerDead = 45 * time.Second
	// defaultPeerRate is ten tasks at once, each of which reports twenty times a second.
	defaultPeerRate  = 200
	defaultPeerBurst = 400
	// DefaultPeerCalls is far more than one process runs at once.
	DefaultPeerCalls = 256
	// defaultPeerReadLimit is the largest message of the bus, and holds the results and the
	// data of tasks that the protocol's own server takes.
	defaultPeerReadLimit = 1 << 20
	// maxPeerReadLimit is below maxDrain, so that a frame beyond any limit can be skipped.
	maxPeerReadLimit = maxDrain / 2
	// defaultLargeFrames of defaultPeerReadLimit are 32 MiB, and some 200 MiB while all of
	// them are taken apart.
	defaultLargeFrames = 32
	// defaultPeerAsks is the tools that one agent waits for outside of its tasks.
	defaultPeerAsks = 32
)

// PeerConfig says what clients, agents and services of the swarm may do. Zero fields
// mean the defaults.
type PeerConfig struct {
	Grace time.Duration // how long a peer that is away keeps its place, default 15 s
	Ping  time.Duration // how often a peer is pinged, default 15 s
	Dead  time.Duration // how long a peer may be silent, default 45 s
	Rate  float64       // frames per second of one peer: more wait, default 200
	Burst int           // frames that may come at once, default 400
	Calls int           // calls that one replica of a service has at a time, default 256
	Asks  int           // tools that one peer waits for at a time outside of tasks, default 32

	ReadLimit   int64 // largest frame in bytes, default 1 MiB: a larger one has no effect but that the task fails of which it is the result
	LargeFrames int   // frames beyond Config.ReadLimit that this gateway reads or handles at a time: more wait, default 32
}

func (c PeerConfig) withDefaults() PeerConfig {
	set(&c.Grace, defaultPeerGrace)
	set(&c.Ping, DefaultPeerPing)
	set(&c.Dead, defaultPeerDead)
	set(&c.Rate, defaultPeerRate)
	set(&c.Burst, defaultPeerBurst)
	set(&c.Calls, DefaultPeerCalls)
	set(&c.Asks, defaultPeerAsks)
	set(&c.ReadLimit, defaultPeerReadLimit)
	set(&c.LargeFrames, defaultLargeFrames)
	return c
}

// check returns an error that names the option which cannot be used.
func (c PeerConfig) check() error {
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
	if c.ReadLimit > maxPeerReadLimit {
		return fmt.Errorf("gateway.peers.read_limit is %d; it may be %d at most", c.ReadLimit, maxPeerReadLimit)
	}
	return nil
}

// checkLegacy returns an error that names an extra listener for which nothing is
// served.
func (c Config) checkLegacy(dep Deps) error {
	var errs []error
	for _, l := range c.Legacy {
		for _, path := range l.Paths {
			if dep.Dialects[path] == nil && dep.Peers[path] == nil {
				errs = append(errs, fmt.Errorf("gateway.legacy: %s: nothing is served under %q", l.Addr, path))
			}
		}
	}
	return errors.Join(errs...)
}

// requireLoopback returns an error if somebody else but this machine can connect.
func (c Config) requireLoopback() error {
	errs := []error{auth.RequireLoopback(c.Addr)}
	for _, l := range c.Legacy {
		errs = append(errs, auth.RequireLoopback(l.Addr))
	}
	return errors.Join(errs...)
}
