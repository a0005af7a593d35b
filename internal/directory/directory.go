// Package directory lists live members and their abilities: leases in a KV bucket, renewed by heartbeat, with a
// watched copy in every process.
//
// A member that dies without leaving stays listed until its lease expires; the directory is a hint for routing and
// never a lock.
//
// A request may carry the revision of the bucket that its sender has seen: a replica answers when its own copy is as new,
// so that a caller reads every write that was confirmed to it.
package directory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bucket"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// beatsPerLease is the number of heartbeats per lease: two may get lost.
	beatsPerLease = 3
	// looksPerLease is the number of searches per lease for members without a heartbeat: with a lease of 30 s the copy
	// drops a dead member within 2 s of the bucket.
	looksPerLease = 15
	// closeBudget bounds the time for which Close tries to remove its members.
	closeBudget = 2 * time.Second
)

// WhatService marks members that are replicas of a Waggle service.
var WhatService = id.MustName("service")

// Member is one live participant.
type Member struct {
	What     id.Name         `json:"what"`
	Name     id.Name         `json:"name"`
	Instance id.Name         `json:"instance"`
	Data     json.RawMessage `json:"data,omitempty"` // shared: do not modify
	Started  time.Time       `json:"started"`        // by the clock of the joining process: show it, do not compare it

	// Version and Go are those of its process, if that says so: Stamp.
	Version string `json:"version,omitempty"`
	Go      string `json:"go,omitempty"`

	// Joined orders the members of one name by the bucket's revision of their join, independent of clocks and of
	// copies of the directory. It is larger than that of every member that was stored before. Join sets it.
	Joined uint64 `json:"joined,omitempty"`
}

func (m Member) key() string { return subject.DirectoryKey(m.What, m.Name, m.Instance) }

// entry is a member as the bucket stores it.
type entry struct {
	member   Member
	raw      []byte
	revision uint64
	seen     time.Time // when its last heartbeat arrived here, or would have if this process had run
}

// Change is a member that has joined, changed or left.
type Change struct {
	Member Member // of one that has left: as it was
	Gone   bool
}

// Directory is a watched copy of the bucket. It is safe for concurrent use. Without a connection it keeps its last
// copy; after a reconnect it reads the bucket again.
type Directory struct {
	kv        jetstream.KeyValue
	conn      *bus.Conn
	lease     time.Duration
	heartbeat time.Duration
	copy      *bucket.Follower[entry]
	unwatch   func()

	telling sync.Mutex // held while entries change and Each's functions learn of it
	each    map[int]func(Change)

	mu       sync.Mutex
	entries  map[string]entry
	keys     []string                 // of entries, sorted
	revision uint64                   // of the newest write in the copy
	reaches  map[chan struct{}]uint64 // revisions that callers wait for
	version  chan struct{}            // closed and replaced at every change
	watch    map[int]func()
	next     int
	leases   map[*Lease]struct{}
	closed   bool
	build    build
}

// build is what services of this process say of it.
type build struct{ version, goVersion string }

// Stamp names the build of this process: services that join from now on show it.
func (d *Directory) Stamp(version, goVersion string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.build = build{version, goVersion}
}

// stamped returns a service with the build of this process. Other members have come to it from elsewhere.
func (d *Directory) stamped(m Member) Member {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.What == WhatService {
		m.Version, m.Go = d.build.version, d.build.goVersion
	}
	return m
}

// Open starts to watch the bucket and returns once the copy is complete. The time to live of leases is a setting of
// the bucket (bus.Topology.LeaseTTL).
func Open(ctx context.Context, c *bus.Conn) (*Directory, error) {
	kv, err := c.Bucket(ctx, subject.BucketDirectory)
	if err != nil {
		return nil, fmt.Errorf("open the directory: %w", err)
	}
	status, err := bus.Persist(ctx, c, "waiting for directory", kv.Status)
	if err != nil {
		return nil, fmt.Errorf("open the directory: %w", err)
	}
	if status.TTL() <= 0 {
		return nil, errors.New("open the directory: the bucket has no time to live, so that the dead would stay in it")
	}
	d := &Directory{
		kv: kv, conn: c, lease: status.TTL(), heartbeat: status.TTL() / beatsPerLease,
		entries: map[string]entry{}, version: make(chan struct{}), watch: map[int]func(){}, leases: map[*Lease]struct{}{},
		reaches: map[chan struct{}]uint64{}, each: map[int]func(Change){},
	}
	d.copy, err = bucket.Follow(ctx, bucket.Config{
		Conn: c, KV: kv, Name: "the directory", Budget: readBudget, Stale: d.stale, Every: d.lease / looksPerLease, Reached: d.reached,
	}, follower{d})
	if err != nil {
		return nil, err
	}
	d.unwatch = c.Watch(func(up bool) {
		if up {
			d.renew()
		}
	})
	return d, nil
}

// Close ends the watch and removes the members that joined here. It lets their leases expire if the removal does not
// succeed within 2 s.
func (d *Directory) Close() {
	d.mu.Lock()
	d.closed = true
	left := make([]*Lease, 0, len(d.leases))
	for l := range d.leases {
		left = append(left, l)
	}
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeBudget)
	defer cancel()
	for _, l := range left {
		if err := l.Leave(ctx); err != nil {
			d.conn.Logger().Debug().Err(err).Msg("directory entry left to expire")
		}
	}
	d.stop()
}

func (d *Directory) stop() {
	d.unwatch()
	d.copy.Close()
}

// renew renews all leases after a reconnect, because they may have expired.
func (d *Directory) renew() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l := range d.leases {
		poke(l.now)
	}
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
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
	var out []Member
	first, _ := slices.BinarySearch(d.keys, prefix)
	for _, k := range d.keys[first:] {
		if !strings.HasPrefix(k, prefix) {
			break
		}
		out = append(out, d.entries[k].listed())
	}
	return out
}

// Wait returns nil when the predicate holds, or ctx's error. It checks the predicate now and after every change.
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
		case <-d.copy.Done():
			return errors.New("wait for the directory: it is closed")
		}
	}
}

// Watch calls f after every change, one call at a time. Heartbeats do not count as changes. f must not block.
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

// changed wakes all waiters. Only the follower calls it.
func (d *Directory) changed() {
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

// listed returns the member with its Joined set: the first stored value does not contain its own revision yet.
func (e entry) listed() Member {
	if e.member.Joined == 0 {
		e.member.Joined = e.revision
	}
	return e.member
}

// same reports whether two entries describe a member equally.
func same(a, b entry) bool {
	m, n := a.listed(), b.listed()
	return m.Joined == n.Joined && m.Started.Equal(n.Started) && bytes.Equal(m.Data, n.Data) && m.key() == n.key()
}

// readBudget bounds one reading of the bucket, which takes milliseconds.
const readBudget = 5 * time.Second

// follower makes the directory the owner of a copy of the bucket.
type follower struct{ d *Directory }

// stale reports whether some member should have expired by now. The bucket leaves no marker then, so the copy has to
// be read again; if the bucket still has the member, the next search reads it once more.
func (d *Directory) stale() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.entries {
		if time.Since(e.seen) > d.lease {
			return true
		}
	}
	return false
}

// Lease keeps a member listed until Leave.
type Lease struct {
	dir  *Directory
	key  string
	end  context.CancelFunc
	done chan struct{}
	now  chan struct{} // requests a heartbeat at once
	once sync.Once
	err  error

	mu     sync.Mutex
	member Member // as of the last Set
	raw    []byte // the member, encoded
}

// Leave removes the member from the directory. It is idempotent and returns the same at every call. After an error
// the lease expires by itself.
func (l *Lease) Leave(ctx context.Context) error {
	l.once.Do(func() {
		l.dir.mu.Lock()
		delete(l.dir.leases, l)
		l.dir.mu.Unlock()
		l.end()
		<-l.done
		if err := l.dir.kv.Delete(ctx, l.key); err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
			l.err = fmt.Errorf("leave the directory as %s: %w", l.key, err)
		}
	})
	return l.err
}

// reached stores the revision of the copy. Only the follower calls it, after all watchers.
func (d *Directory) reached(revision uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.revision = revision
	for done, wanted := range d.reaches {
		if wanted <= revision {
			close(done)
			delete(d.reaches, done)
		}
	}
}

// current returns the value for the next heartbeat.
func (l *Lease) current() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.raw
}
