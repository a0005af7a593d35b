// Package bucket keeps copies of key-value buckets.
//
// Processes decide with their copies, so the follower does more than a watch: it reads the whole bucket again after
// each reconnect (markers of deleted and expired keys may have gone by then), when the watch ends, when the creation
// of the watch takes too long, and when the owner reports the copy stale or has waited for a write in vain.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
)

const (
	// defaultBudget bounds one reading of a bucket: 100,000 keys take less than a second, an election after a lost
	// leader 4 to 7 s.
	defaultBudget = 15 * time.Second
	// defaultPause spaces the attempts: a restarting server returns within seconds.
	defaultPause = time.Second
	// doubtPause spaces the readings that Doubt causes.
	doubtPause = time.Second
)

var (
	errSlow = errors.New("the bucket was not read in time")
	errOver = errors.New("the watch has ended")
)

// Owner receives the contents of the bucket. The follower calls one method at a time, from one goroutine; the methods
// must not wait for the follower.
type Owner[V any] interface {
	// Decode returns the value of a key, or false if the value is invalid.
	Decode(key string, value []byte) (V, bool)
	// Replace receives a complete reading, which replaces all earlier entries. The owner keeps the map.
	Replace(all map[string]Entry[V])
	// Apply receives each later change, in the order of the writes, and never before the first Replace. A change that
	// the reading already contains may come again.
	Apply(c Change[V])
}

// Config names the bucket and the limits of a follower.
type Config struct {
	Conn *bus.Conn
	KV   jetstream.KeyValue
	Keys string // as of KeyValue.Watch; empty = all
	Name string // in logs

	// Open opens a feed of the keys; default Watch.
	Open func(context.Context) (Feed, error)

	Budget time.Duration // of one reading; default 15 s
	Pause  time.Duration // after a failed reading; default 1 s

	// Reached is called after Replace and Apply with the revision of the newest write in the copy. nil disables it. It
	// must not block.
	Reached func(revision uint64)

	// Stale reports whether the copy holds keys that should be gone; then a marker was lost, and the follower reads
	// the bucket again. The follower calls it at intervals of Every while it is connected. nil disables it. It must
	// not block.
	Stale func() bool
	Every time.Duration // interval between calls of Stale; required with Stale
}

// Follower follows a bucket until Close. It never gives up: without a connection, or without answers of the bucket,
// the owner keeps its last copy.
type Follower[V any] struct {
	cfg     Config
	owner   Owner[V]
	end     context.CancelFunc
	unwatch func()
	resync  chan struct{}
	done    chan struct{}

	mu       sync.Mutex
	complete time.Time // when the last reading was complete; zero while one is under way
}

// Follow starts a follower and returns after the first complete reading, or with ctx's error; then it has stopped the
// follower.
func Follow[V any](ctx context.Context, cfg Config, owner Owner[V]) (*Follower[V], error) {
	if cfg.Keys == "" {
		cfg.Keys = ">"
	}
	if cfg.Open == nil {
		cfg.Open = func(ctx context.Context) (Feed, error) { return Watch(ctx, cfg.Conn, cfg.KV.Bucket(), cfg.Keys) }
	}
	if cfg.Budget <= 0 {
		cfg.Budget = defaultBudget
	}
	if cfg.Pause <= 0 {
		cfg.Pause = defaultPause
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // end is called by Close
	f := &Follower[V]{cfg: cfg, owner: owner, end: end, resync: make(chan struct{}, 1), done: make(chan struct{})}
	f.unwatch = cfg.Conn.Watch(func(up bool) {
		if up {
			f.Again()
		}
	})
	ready := make(chan struct{})
	go f.follow(life, sync.OnceFunc(func() { close(ready) }))
	select {
	case <-ready:
		return f, nil
	case <-ctx.Done():
		f.Close()
		return nil, fmt.Errorf("read %s: %w", cfg.Name, context.Cause(ctx))
	}
}

// Again requests a new reading of the bucket and returns at once.
func (f *Follower[V]) Again() {
	select {
	case f.resync <- struct{}{}:
	default:
	}
}

// Doubt is Again for owners that miss a write which must have arrived: a server that restarts takes its watches along,
// which are otherwise noticed missing after 15 s. It does nothing while the bucket is read, and within a second after.
func (f *Follower[V]) Doubt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.complete.IsZero() && time.Since(f.complete) > doubtPause {
		f.complete = time.Time{}
		f.Again()
	}
}

// reads notes when a reading was complete, the zero time for one that begins.
func (f *Follower[V]) reads(complete time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.complete = complete
}

// Done is closed when the follower has ended.
func (f *Follower[V]) Done() <-chan struct{} { return f.done }

// Close ends the follower. The owner gets no further call after Close returns. Close may be called more than once;
// the owner's methods must not call it.
func (f *Follower[V]) Close() {
	f.unwatch()
	f.end()
	<-f.done
}

// follow keeps the copy until life ends, and calls ready when the copy is complete.
func (f *Follower[V]) follow(life context.Context, ready func()) {
	defer close(f.done)
	for life.Err() == nil {
		err := f.read(life, ready)
		if err == nil || life.Err() != nil {
			continue
		}
		f.cfg.Conn.Logger().Debug().Err(err).Str("bucket", f.cfg.Name).Msg("bucket will be reloaded")
		select {
		case <-life.Done():
		case <-f.resync:
		case <-time.After(f.cfg.Pause):
		}
	}
}

// read reads the bucket and applies changes until a new reading is due.
func (f *Follower[V]) read(life context.Context, ready func()) error {
	f.reads(time.Time{})
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	late := time.AfterFunc(f.cfg.Budget, cancel) // covers the creation of the watch
	defer late.Stop()
	w, err := f.cfg.Open(ctx)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer w.Stop()
	check, stop := f.checks()
	defer stop()
	r := reading[V]{f: f, late: late, ready: ready, first: map[string]Entry[V]{}}
	for {
		select {
		case <-ctx.Done():
			return errSlow
		case <-f.resync:
			return nil
		case <-check:
			if r.complete && f.cfg.Conn.Up() && f.cfg.Stale() {
				return nil
			}
		case <-w.Over():
			return errOver
		case m := <-w.Updates():
			if err := r.take(EntryOf(f.cfg.KV.Bucket(), m)); err != nil {
				return err
			}
		}
	}
}

// checks returns a ticker that triggers calls of Stale.
func (f *Follower[V]) checks() (<-chan time.Time, func()) {
	if f.cfg.Stale == nil {
		return nil, func() {}
	}
	t := time.NewTicker(f.cfg.Every)
	return t.C, t.Stop
}

// reading is one reading of the bucket and the changes after it.
type reading[V any] struct {
	f        *Follower[V]
	late     *time.Timer
	ready    func()
	first    map[string]Entry[V]
	newest   uint64 // newest revision in the reading
	complete bool
}

// take handles the next update of the watch; nil marks the end of the reading.
func (r *reading[V]) take(e *Change[[]byte]) error {
	if e == nil {
		if !r.late.Stop() {
			return errSlow
		}
		r.complete = true
		r.f.owner.Replace(r.first)
		r.first = nil
		r.f.reads(time.Now())
		r.reached()
		r.ready()
		return nil
	}
	r.newest = max(r.newest, e.Revision)
	c := Change[V]{Key: e.Key, Entry: Entry[V]{Revision: e.Revision, Written: e.Written}, Gone: true}
	if !e.Gone {
		v, ok := r.f.owner.Decode(e.Key, e.Value)
		c.Value, c.Gone = v, !ok
	}
	switch {
	case r.complete:
		r.f.owner.Apply(c)
		r.reached()
	case c.Gone:
		delete(r.first, c.Key)
	default:
		r.first[c.Key] = c.Entry
	}
	return nil
}

func (r *reading[V]) reached() {
	if tell := r.f.cfg.Reached; tell != nil {
		tell(r.newest)
	}
}
