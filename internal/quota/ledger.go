package quota

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bucket"
	"github.com/waggle-dev/waggle/internal/testsignal"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// writeBudget outlasts the election after a lost leader (4 to 7 s).
	writeBudget = 10 * time.Second
	// markerTTL is the lifetime of the marker of a returned holding: as long as bus.Topology keeps such markers.
	markerTTL = time.Hour
	// defaultSweep is the interval of the search for holdings that are over.
	defaultSweep = time.Minute
	// sweepMost bounds the keys that one sweep checks, and readMost those of which each takes a read of a log. A sweep spreads
	// the latter over its interval: the bus keeps each block that it reads, of up to 8 MB, in memory for ten seconds.
	sweepMost, readMost = 200, 20
	// sweepAge spares keys whose holder may be about to begin.
	sweepAge = time.Minute
)

// Rules decide which holdings of a ledger count. The ledger calls Group and Counts with its lock held: they must not
// block, nor call the ledger.
type Rules struct {
	// Group joins holders whose holdings count together or not at all; nil puts all into one group.
	Group func(holder id.Entity) string
	// Counts reports whether the holdings of a group count now; nil means always.
	Counts func(group string) bool
	// Apart counts each group separately: the sums as of a write are those of its holder's group, whatever Counts
	// says.
	Apart bool
	// Over reports whether a holding can be deleted permanently. The sweep calls it without the lock, for holdings older
	// than a minute; an error means unknown. nil means never.
	Over func(ctx context.Context, q subject.Quota) (bool, error)

	// Reads says that Over reads a log.
	Reads bool

	Sweep time.Duration // interval of the sweep; default 1 min
	Now   func() time.Time
}

// Sums are the total holdings of a tenant and of one principal.
type Sums struct{ Tenant, Principal int64 }

type entry struct {
	n        int64
	revision uint64
	seen     time.Time
}

// owner identifies a sum of holdings: a principal of a tenant, or, with the zero Entity, the tenant.
type owner struct {
	tenant    id.Tenant
	principal id.Entity
}

type holding struct {
	tenant id.Tenant
	holder id.Entity
}

// waiter waits until the copy contains a write of the key.
type waiter struct {
	revision uint64 // 0 = the write is in progress
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
	version uint64 // changes with the copy
	cursor  string // the key at which the next sweep continues
	echo    func(subject.Quota, int64)

	changed testsignal.Signal[uint64] // tells tests of each change of the copy, with the version
}

// OpenLedger starts to follow the holdings of a resource and returns once the copy is complete.
func OpenLedger(ctx context.Context, conn *bus.Conn, resource id.Name, rules Rules) (*Ledger, error) {
	kv, err := conn.Bucket(ctx, subject.QuotaBucket(resource))
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

// Close ends the copy. Holdings stay in the bucket.
func (l *Ledger) Close() {
	l.end()
	l.wg.Wait()
	l.copy.Close()
}

// Sums returns the current holdings of a tenant and of one principal.
func (l *Ledger) Sums(t id.Tenant, principal id.Entity) Sums {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total(t, principal)
}

// Held returns a holder's key; ok is false if it holds nothing.
func (l *Ledger) Held(t id.Tenant, holder id.Entity) (q subject.Quota, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q, ok = l.holders[holding{t, holder}]
	return q, ok
}

// Version changes with the holdings.
func (l *Ledger) Version() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version
}

func (l *Ledger) total(t id.Tenant, principal id.Entity) Sums {
	return l.add(t, principal, l.rules.Counts)
}

// asOf returns the sums after a write of q.
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

// Set writes the amount of a holder, which may be 0, and returns the sums as of that very write: they include all
// earlier writes and no later ones. A repeated Set is harmless. After an error the amount may or may not be written.
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

// written sets the write that a waiter waits for. The copy may have passed it.
func (l *Ledger) written(q subject.Quota, w *waiter, revision uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.revision = revision
	if s, ok := w.at[revision]; ok {
		w.reached <- s
		return
	}
	if l.entries[q].revision > revision { // the copy was replaced since: it contains our write and later ones
		w.reached <- l.asOf(q)
	}
}

// tell records the current sums for the waiters of the key.
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
	l.changed.Send(l.version)
}

// replace replaces the whole copy.
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
	l.changed.Send(l.version)
	if l.echo == nil {
		return
	}
	for _, q := range lost {
		if _, ok := l.entries[q]; !ok {
			l.echo(q, 0)
		}
	}
}

// follower makes the ledger the owner of a copy of its part of the bucket.
type follower struct{ l *Ledger }

// sweep returns holdings that are over, at intervals.
func (l *Ledger) sweep(life context.Context) {
	t := time.NewTicker(l.rules.Sweep)
	defer t.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-t.C:
			l.sweepOnce(life)
		}
	}
}

// sweepOnce checks the next keys and returns the number of returned holdings.
func (l *Ledger) sweepOnce(ctx context.Context) (given int) {
	for i, q := range l.next(l.rules.Now().Add(-min(sweepAge, l.rules.Sweep))) {
		if i > 0 && !l.space(ctx) {
			return given
		}
		over, err := l.rules.Over(ctx, q)
		if err == nil && over {
			if err = l.forget(ctx, q); err == nil {
				given++
			}
		}
		if err != nil {
			l.conn.Logger().Debug().Err(err).Str("key", q.Key()).Msg("check of quota holding will be retried")
		}
		if ctx.Err() != nil {
			return given
		}
	}
	return given
}

// space waits between two keys of a sweep that reads logs, and reports whether ctx continues.
func (l *Ledger) space(ctx context.Context) bool {
	if !l.rules.Reads {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(l.rules.Sweep / (readMost + 1)):
		return true
	}
}

// next returns the keys for the next sweep.
func (l *Ledger) next(before time.Time) []subject.Quota {
	type key struct {
		text string
		q    subject.Quota
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]key, 0, len(l.entries))
	for q, e := range l.entries {
		if e.seen.Before(before) {
			all = append(all, key{q.Key(), q})
		}
	}
	slices.SortFunc(all, func(a, b key) int { return strings.Compare(a.text, b.text) })
	at := slices.IndexFunc(all, func(k key) bool { return k.text > l.cursor })
	most := sweepMost
	if l.rules.Reads {
		most = readMost
	}
	all = all[max(at, 0):]
	all = all[:min(len(all), most)]
	l.cursor = ""
	if len(all) == most {
		l.cursor = all[most-1].text
	}
	out := make([]subject.Quota, len(all))
	for i, k := range all {
		out[i] = k.q
	}
	return out
}
