// Package directory says who is connected and what it can do: leases in a KV
// bucket, renewed by heartbeat, with a watched copy in every process.
//
// A member that dies without leaving is listed until its lease runs out; the
// directory is a hint for routing and never a lock.
package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// WhatService marks members that are replicas of a Waggle service.
var WhatService = id.MustName("service")

// Member is one live participant.
type Member struct {
	What     id.Name         `json:"what"`
	Name     id.Name         `json:"name"`
	Instance id.Name         `json:"instance"`
	Data     json.RawMessage `json:"data,omitempty"`
	Started  time.Time       `json:"started"`
}

func (m Member) key() string { return subject.DirectoryKey(m.What, m.Name, m.Instance) }

// Directory is a watched copy of the bucket. It is safe for concurrent use.
type Directory struct {
	kv        jetstream.KeyValue
	heartbeat time.Duration
	end       context.CancelFunc
	done      chan struct{}

	mu      sync.Mutex
	members map[string]Member
	version chan struct{} // closed and replaced at every change
	watch   map[int]func()
	next    int
}

// Open starts to watch the bucket and returns once the copy is complete.
func Open(ctx context.Context, c *bus.Conn) (*Directory, error) {
	kv, err := c.JS().KeyValue(ctx, subject.BucketDirectory)
	if err != nil {
		return nil, fmt.Errorf("open the directory: %w", err)
	}
	status, err := kv.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the directory: %w", err)
	}
	life, end := context.WithCancel(context.Background()) //nolint:contextcheck // it outlives the opening
	d := &Directory{
		kv: kv, heartbeat: status.TTL() / 3, end: end, done: make(chan struct{}),
		members: map[string]Member{}, version: make(chan struct{}), watch: map[int]func(){},
	}
	w, err := kv.WatchAll(life)
	if err != nil {
		end()
		return nil, fmt.Errorf("watch the directory: %w", err)
	}
	ready := make(chan struct{})
	go d.follow(life, w, ready)
	select {
	case <-ready:
		return d, nil
	case <-ctx.Done():
		d.Close()
		return nil, fmt.Errorf("read the directory: %w", ctx.Err())
	}
}

// Close ends the watch. Leases are not given up.
func (d *Directory) Close() {
	d.end()
	<-d.done
}

// follow applies updates until life ends. The KV watcher itself survives
// reconnects: it is an ordered consumer, which starts over where it stopped. Keys
// that expired meanwhile are dropped by the sweep.
func (d *Directory) follow(life context.Context, w jetstream.KeyWatcher, ready chan struct{}) {
	defer close(d.done)
	defer func() { _ = w.Stop() }()
	sweep := time.NewTicker(d.heartbeat)
	defer sweep.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-sweep.C:
			d.sweep(life)
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return
			case e == nil:
				close(ready)
			default:
				d.apply(e)
			}
		}
	}
}

func (d *Directory) apply(e jetstream.KeyValueEntry) {
	var m Member
	gone := e.Operation() != jetstream.KeyValuePut || json.Unmarshal(e.Value(), &m) != nil || m.key() != e.Key()
	d.mu.Lock()
	old, known := d.members[e.Key()]
	changed := known == gone || !gone && !old.Started.Equal(m.Started)
	if gone {
		delete(d.members, e.Key())
	} else {
		d.members[e.Key()] = m
	}
	d.mu.Unlock()
	if changed {
		d.notify()
	}
}

// sweep drops members whose key is gone: the bucket's own expiry leaves a marker
// only where the server supports it and the watcher was connected.
func (d *Directory) sweep(life context.Context) {
	ctx, cancel := context.WithTimeout(life, d.heartbeat)
	defer cancel()
	known := d.keys() // what joins while the list is read is not judged by it
	lister, err := d.kv.ListKeys(ctx)
	if err != nil {
		return // no server, no news: the copy stays as it is
	}
	live := map[string]bool{}
	for k := range lister.Keys() {
		live[k] = true
	}
	if ctx.Err() != nil {
		return
	}
	d.mu.Lock()
	before := len(d.members)
	for _, k := range known {
		if !live[k] {
			delete(d.members, k)
		}
	}
	changed := len(d.members) != before
	d.mu.Unlock()
	if changed {
		d.notify()
	}
}

func (d *Directory) keys() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.members))
}

func (d *Directory) notify() {
	d.mu.Lock()
	close(d.version)
	d.version = make(chan struct{})
	fs := make([]func(), 0, len(d.watch))
	for _, f := range d.watch {
		fs = append(fs, f)
	}
	d.mu.Unlock()
	for _, f := range fs {
		f()
	}
}

// Members returns the live members of a name, sorted by instance.
func (d *Directory) Members(what, name id.Name) []Member {
	return d.list(what.String() + "." + name.String() + ".")
}

// All returns the live members of all names, sorted by name and instance.
func (d *Directory) All(what id.Name) []Member { return d.list(what.String() + ".") }

func (d *Directory) list(prefix string) []Member {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := make([]string, 0, len(d.members))
	for k := range d.members {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	out := make([]Member, 0, len(keys))
	for _, k := range keys {
		out = append(out, d.members[k])
	}
	return out
}

// Wait returns nil when the predicate holds, which it checks now and after every
// change, or ctx's error.
func (d *Directory) Wait(ctx context.Context, pred func(*Directory) bool) error {
	for {
		d.mu.Lock()
		changed := d.version
		d.mu.Unlock()
		if pred(d) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the directory: %w", ctx.Err())
		case <-d.done:
			return errors.New("wait for the directory: it is closed")
		}
	}
}

// Watch calls f after every change, from one goroutine. f must not block.
func (d *Directory) Watch(f func()) (cancel func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.next
	d.next++
	d.watch[n] = f
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.watch, n)
	}
}
