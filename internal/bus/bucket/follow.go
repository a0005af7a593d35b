// Package bucket keeps copies of key-value buckets.
//
// A copy is what a process decides with, so the follower does what a watch alone does
// not: it reads the bucket anew after every return of the connection (markers of what
// was deleted or has expired may be gone by then), when the watch ends, when it says
// nothing for too long while it is made, and when its owner misses something.
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
	// defaultBudget bounds one reading of a bucket: 100,000 keys take less than a second,
	// an election after a lost leader 4 to 7 s.
	defaultBudget = 15 * time.Second
	// defaultPause spaces the attempts: a server that restarts is back within seconds.
	defaultPause = time.Second
)

var (
	errSlow = errors.New("the bucket was not read in time")
	errOver = errors.New("the watch has ended")
)

// Entry is what a key says.
type Entry[V any] struct {
	Value    V
	Revision uint64 // of the bucket: grows with every write
}

// Change is what has become of a key. One that was deleted, purged or has expired is
// gone, and so is one whose value nobody can read.
type Change[V any] struct {
	Key string
	Entry[V]
	Gone bool
}

// Owner takes what the follower reads. Its methods are called by one goroutine, one at a
// time, and must not wait for the follower.
type Owner[V any] interface {
	// Decode returns what a key says, or false if it is not understood.
	Decode(key string, value []byte) (V, bool)
	// Replace is told of a whole reading, which takes the place of all that was known. The
	// map is the owner's.
	Replace(all map[string]Entry[V])
	// Apply is told of each change after that, in the order of the writes, and never before
	// the first Replace. A change that is in the reading may come again.
	Apply(c Change[V])
}

// Config says what is followed.
type Config struct {
	Conn *bus.Conn
	KV   jetstream.KeyValue
	Keys string // as of KeyValue.Watch; empty = all
	Name string // in logs

	Budget time.Duration // of one reading; default 15 s
	Pause  time.Duration // after one that failed; default 1 s

	// Reached is told, after Replace and Apply, how far the copy is: the revision of the
	// newest write that was read. nil: nothing is. It must not block.
	Reached func(revision uint64)

	// Stale is asked every so often, while the connection stands, whether the copy holds
	// what should be gone: then a marker was missed, and the bucket is read anew. nil:
	// never. It must not block.
	Stale func() bool
	Every time.Duration // between two questions; needed if there is a Stale
}

// Follower follows a bucket until it is closed. It never gives up: while there is no
// connection, or the bucket does not answer, its owner keeps what it knew.
type Follower[V any] struct {
	cfg     Config
	owner   Owner[V]
	end     context.CancelFunc
	unwatch func()
	resync  chan struct{}
	done    chan struct{}
}

// Follow begins to follow and returns once the owner has the first whole reading, or
// with ctx's error; then nothing is followed.
func Follow[V any](ctx context.Context, cfg Config, owner Owner[V]) (*Follower[V], error) {
	if cfg.Keys == "" {
		cfg.Keys = ">"
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

// Again has the bucket read anew. It does not wait for that.
func (f *Follower[V]) Again() {
	select {
	case f.resync <- struct{}{}:
	default:
	}
}

// Done is closed when the follower has ended.
func (f *Follower[V]) Done() <-chan struct{} { return f.done }

// Close ends the follower. When it returns the owner is not called any more. It may be
// called more than once, and must not be called by the owner's methods.
func (f *Follower[V]) Close() {
	f.unwatch()
	f.end()
	<-f.done
}

// follow keeps the copy until life ends, calling ready when it is complete.
func (f *Follower[V]) follow(life context.Context, ready func()) {
	defer close(f.done)
	for life.Err() == nil {
		err := f.read(life, ready)
		if err == nil || life.Err() != nil {
			continue
		}
		f.cfg.Conn.Logger().Debug().Err(err).Str("bucket", f.cfg.Name).Msg("reread bucket")
		select {
		case <-life.Done():
		case <-f.resync:
		case <-time.After(f.cfg.Pause):
		}
	}
}

// read reads the bucket and applies its changes until a new reading is due.
func (f *Follower[V]) read(life context.Context, ready func()) error {
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	late := time.AfterFunc(f.cfg.Budget, cancel) // covers the making of the watch
	defer late.Stop()
	w, err := f.cfg.KV.Watch(ctx, f.cfg.Keys)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer end(w)
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
		case e, ok := <-w.Updates():
			if !ok {
				return errOver
			}
			if err := r.take(e); err != nil {
				return err
			}
		}
	}
}

// checks ticks when it is to be asked whether the copy is stale.
func (f *Follower[V]) checks() (<-chan time.Time, func()) {
	if f.cfg.Stale == nil {
		return nil, func() {}
	}
	t := time.NewTicker(f.cfg.Every)
	return t.C, t.Stop
}

// reading is one reading of the bucket, and the changes after it.
type reading[V any] struct {
	f        *Follower[V]
	late     *time.Timer
	ready    func()
	first    map[string]Entry[V]
	newest   uint64 // revision that was read
	complete bool
}

// take takes the next update of the watch; nil says that the reading is complete.
func (r *reading[V]) take(e jetstream.KeyValueEntry) error {
	if e == nil {
		if !r.late.Stop() {
			return errSlow
		}
		r.complete = true
		r.f.owner.Replace(r.first)
		r.first = nil
		r.reached()
		r.ready()
		return nil
	}
	r.newest = max(r.newest, e.Revision())
	c := Change[V]{Key: e.Key(), Entry: Entry[V]{Revision: e.Revision()}, Gone: true}
	if e.Operation() == jetstream.KeyValuePut {
		v, ok := r.f.owner.Decode(e.Key(), e.Value())
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

// end stops the watch. What it still holds is taken off its hands: its goroutine
// could not end otherwise.
func end(w jetstream.KeyWatcher) {
	if err := w.Stop(); err != nil {
		return // the connection is closed, and the watch with it
	}
	for open := true; open; {
		_, open = <-w.Updates()
	}
}
