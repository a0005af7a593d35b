package quota

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bucket"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// writeBudget outlasts the election after a lost leader (4 to 7 s).
	writeBudget = 10 * time.Second
	// markerTTL is how long the marker of a key that was given back stays: as long as
	// bus.Topology keeps such markers.
	markerTTL = time.Hour
	// defaultSweep is how often it is looked what does not count any more.
	defaultSweep = time.Minute
	// sweepMost bounds the keys that one sweep looks at: some 100 ms of reading logs.
	sweepMost = 200
	// sweepAge spares keys whose holder may just be about to begin.
	sweepAge = time.Minute
)

// Rules say what of a ledger counts. Both functions are called with the ledger locked:
// they must not block, nor call the ledger.
type Rules struct {
	// Group puts holders together whose holdings count or do not count as one; nil: all
	// are in one group.
	Group func(holder id.Entity) string
	// Counts reports whether the holdings of a group count now; nil: all do.
	Counts func(group string) bool
	// Apart says that each group is counted for itself: what is held as of a write is what
	// the group of its holder has, whatever counts now.
	Apart bool
	// Over reports whether a holding can be forgotten for good. It is asked now and then,
	// without the lock, about each one that is older than a minute; an error means that
	// it is not known. nil: nothing is ever over.
	Over func(ctx context.Context, q subject.Quota) (bool, error)

	Sweep time.Duration // how often it is looked what is over; default 1 min
	Now   func() time.Time
}

// Sums is how much is held.
type Sums struct{ Tenant, Principal int64 }

type entry struct {
	n        int64
	revision uint64
	seen     time.Time
}

// owner is whose holdings are added up: a principal of a tenant, or, with the zero
// Entity, the tenant.
type owner struct {
	tenant    id.Tenant
	principal id.Entity
}

type holding struct {
	tenant id.Tenant
	holder id.Entity
}

// waiter waits until the copy has a write of the key.
type waiter struct {
	revision uint64 // 0 = the write is on its way
	at       map[uint64]Sums
	reached  chan Sums
}

// Ledger is a watched copy of the holdings of one resource. It is safe for concurrent use.
type Ledger struct {
	conn     *bus.Conn
	kv       jetstream.KeyValue
	resource id.Name
	rules    Rules
	end      context.CancelFunc
	wg       sync.WaitGroup
	copy     *bucket.Follower[entry]

	mu      sync.Mutex
	entries map[subject.Quota]entry
	sums    map[owner]map[string]int64 // by group
	holders map[holding]subject.Quota
	waiting map[subject.Quota][]*waiter
	version uint64 // counts changes of the copy
	cursor  string // the key at which the next sweep goes on
	echo    func(subject.Quota, int64)
}

// OpenLedger starts to follow the holdings of a resource and returns once the copy is
// complete.
func OpenLedger(ctx context.Context, conn *bus.Conn, resource id.Name, rules Rules) (*Ledger, error) {
	kv, err := conn.Bucket(ctx, subject.BucketQuota)
	if err != nil {
		return nil, fmt.Errorf("open the ledger of quotas: %w", err)
	}
	if rules.Now == nil {
		rules.Now = time.Now
	}
	if rules.Sweep <= 0 {
		rules.Sweep = defaultSweep
	}
	if rules.Group == nil {
		rules.Group = func(id.Entity) string { return "" }
	}
	if rules.Counts == nil {
		rules.Counts = func(string) bool { return true }
	}
	l := &Ledger{conn: conn, kv: kv, resource: resource, rules: rules, waiting: map[subject.Quota][]*waiter{}}
	l.replace(nil)
	l.copy, err = bucket.Follow(ctx, bucket.Config{
		Conn: conn, KV: kv, Keys: subject.QuotaKeys(resource), Name: "the ledger of " + resource.String(),
	}, follower{l})
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	l.end = end
	if rules.Over != nil {
		l.wg.Go(func() { l.sweep(life) })
	}
	return l, nil
}

// Close ends the copy. What is held stays in the bucket.
func (l *Ledger) Close() {
	l.end()
	l.wg.Wait()
	l.copy.Close()
}

// Sums returns how much a tenant, and one of its principals, hold now.
func (l *Ledger) Sums(t id.Tenant, principal id.Entity) Sums {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total(t, principal)
}

// Held returns what a holder has, and for whom; ok is false if that is nothing.
func (l *Ledger) Held(t id.Tenant, holder id.Entity) (q subject.Quota, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q, ok = l.holders[holding{t, holder}]
	return q, ok
}

// Version changes with what is held.
func (l *Ledger) Version() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version
}

func (l *Ledger) total(t id.Tenant, principal id.Entity) Sums {
	return l.add(t, principal, l.rules.Counts)
}

// asOf is what is held with a write of q.
func (l *Ledger) asOf(q subject.Quota) Sums {
	counts := l.rules.Counts
	if l.rules.Apart {
		own := l.rules.Group(q.Holder)
		counts = func(group string) bool { return group == own }
	}
	return l.add(q.Tenant, q.Principal, counts)
}

func (l *Ledger) add(t id.Tenant, principal id.Entity, counts func(string) bool) Sums {
	add := func(o owner) (sum int64) {
		for g, n := range l.sums[o] {
			if counts(g) {
				sum += n
			}
		}
		return sum
	}
	return Sums{Tenant: add(owner{tenant: t}), Principal: add(owner{t, principal})}
}

// Set writes how much a holder has, which may be nothing, and returns how much is held
// as of that very write: all that was written before it is in it and nothing that came
// later. Writing again what is there does no harm. After an error it is not known
// whether it was written.
func (l *Ledger) Set(ctx context.Context, q subject.Quota, n int64) (Sums, error) {
	ctx, cancel := context.WithTimeout(ctx, writeBudget)
	defer cancel()
	if n <= 0 {
		return Sums{}, l.forget(ctx, q)
	}
	w := l.expect(q)
	defer l.forgo(q, w)
	revision, err := l.kv.Put(ctx, q.Key(), strconv.AppendInt(nil, n, 10))
	if err != nil {
		return Sums{}, unavailable(err)
	}
	l.written(q, w, revision)
	select {
	case s := <-w.reached:
		return s, nil
	case <-ctx.Done():
		return Sums{}, unavailable(fmt.Errorf("the write of %s was not seen: %w", q.Key(), context.Cause(ctx)))
	}
}

func (l *Ledger) forget(ctx context.Context, q subject.Quota) error {
	err := l.kv.Purge(ctx, q.Key(), jetstream.PurgeTTL(markerTTL))
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return unavailable(err)
	}
	return nil
}

func unavailable(err error) error { return fault.New(fault.BusUnavailable).Wrap(err) }

func (l *Ledger) expect(q subject.Quota) *waiter {
	w := &waiter{at: map[uint64]Sums{}, reached: make(chan Sums, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[q] = append(l.waiting[q], w)
	return w
}

func (l *Ledger) forgo(q subject.Quota, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting[q] = slices.DeleteFunc(l.waiting[q], func(o *waiter) bool { return o == w })
	if len(l.waiting[q]) == 0 {
		delete(l.waiting, q)
	}
}

// written tells a waiter which write it waits for. The copy may have passed it.
func (l *Ledger) written(q subject.Quota, w *waiter, revision uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.revision = revision
	if s, ok := w.at[revision]; ok {
		w.reached <- s
		return
	}
	if l.entries[q].revision > revision { // it was read whole since: that has our write, and what came after it
		w.reached <- l.asOf(q)
	}
}

// tell notes for those who wait for a write of the key what was held then.
func (l *Ledger) tell(q subject.Quota, revision uint64) {
	for _, w := range l.waiting[q] {
		s := l.asOf(q)
		w.at[revision] = s
		if w.revision != 0 && revision >= w.revision && len(w.reached) == 0 {
			w.reached <- s
		}
	}
}

// put applies one change to the copy.
func (l *Ledger) put(q subject.Quota, e entry) {
	old, known := l.entries[q]
	if known && old.revision > e.revision {
		return
	}
	group := l.rules.Group(q.Holder)
	for _, o := range []owner{{tenant: q.Tenant}, {q.Tenant, q.Principal}} {
		groups := l.sums[o]
		if groups == nil {
			groups = map[string]int64{}
			l.sums[o] = groups
		}
		if groups[group] += e.n - old.n; groups[group] == 0 {
			delete(groups, group)
		}
		if len(groups) == 0 {
			delete(l.sums, o)
		}
	}
	if e.n == 0 {
		delete(l.entries, q)
		delete(l.holders, holding{q.Tenant, q.Holder})
	} else {
		l.entries[q] = e
		l.holders[holding{q.Tenant, q.Holder}] = q
	}
	l.version++
}

// replace puts a whole copy in place.
func (l *Ledger) replace(entries map[subject.Quota]entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := slices.Collect(maps.Keys(l.entries))
	l.entries, l.sums, l.holders = map[subject.Quota]entry{}, map[owner]map[string]int64{}, map[holding]subject.Quota{}
	for q, e := range entries {
		l.put(q, e)
	}
	for q := range l.waiting {
		if e, ok := l.entries[q]; ok {
			l.tell(q, e.revision)
		}
	}
	l.version++
	if l.echo == nil {
		return
	}
	for _, q := range lost {
		if _, ok := l.entries[q]; !ok {
			l.echo(q, 0)
		}
	}
}
