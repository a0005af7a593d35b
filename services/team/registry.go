package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bucket"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// registryPause spaces the attempts to watch the bucket.
	registryPause = time.Second
	// registryPut bounds one attempt to write to it.
	registryPut = 5 * time.Second
)

// Kinds of entries: a team without a parent is listed until it is closed; a team whose members may
// be working is active.
var (
	kindListed = id.MustName("team")
	kindActive = id.MustName("team-active")
)

// note is a team in the list.
type note struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Owner   string    `json:"owner,omitempty"` // empty: its log says it
}

// place is a team that is noted, and since which revision of the bucket.
type place struct {
	note
	revision uint64
}

// registry is a watched copy of the notes about teams in the bucket registry. It holds this
// process's writes at once, and others' a moment later. It is safe for concurrent use.
type registry struct {
	log     zerolog.Logger
	changed func() // called after every change of the active teams; must not block

	conn *bus.Conn
	kv   jetstream.KeyValue
	life context.Context //nolint:containedctx // of the watch, ended by close
	end  context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex
	closed bool
	listed map[subject.Log]place
	active map[subject.Log]place
	below  map[subject.Log]int // how many nested teams of a team are active
}

func newRegistry(log zerolog.Logger, changed func()) *registry {
	r := &registry{log: log, changed: changed, listed: map[subject.Log]place{}, active: map[subject.Log]place{}, below: map[subject.Log]int{}}
	r.life, r.end = context.WithCancel(context.Background())
	return r
}

// open reads the bucket and begins to follow it.
func (r *registry) open(ctx context.Context, conn *bus.Conn) error {
	kv, err := conn.Bucket(ctx, subject.BucketRegistry)
	if err != nil {
		return err
	}
	r.conn, r.kv = conn, kv
	ready := make(chan struct{})
	if !r.begin(sync.OnceFunc(func() { close(ready) })) {
		return errClosed
	}
	select {
	case <-ready:
		return nil
	case <-r.life.Done():
		return errClosed
	case <-ctx.Done():
		r.close()
		return fmt.Errorf("read the bucket %s: %w", subject.BucketRegistry, ctx.Err())
	}
}

// begin follows the bucket, unless the registry was closed before.
func (r *registry) begin(ready func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.work.Go(func() { r.follow(r.life, ready) })
	}
	return !r.closed
}

// close ends the watch. It may be called repeatedly, and while open runs.
func (r *registry) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.end()
	r.work.Wait()
}

// follow keeps the copy until life ends.
func (r *registry) follow(life context.Context, ready func()) {
	for life.Err() == nil {
		if err := r.read(life, ready); err != nil && life.Err() == nil {
			r.log.Debug().Err(err).Msg("team registry will be reloaded")
			select {
			case <-life.Done():
			case <-time.After(registryPause):
			}
		}
	}
}

var (
	errWatchOver = errors.New("the watch has ended")
	errClosed    = errors.New("the registry of teams is closed")
)

// read reads the bucket as it is, and what changes in it from then on.
func (r *registry) read(life context.Context, ready func()) error {
	began := r.marks()
	w, err := bucket.Watch(life, r.conn, subject.BucketRegistry, subject.RegistryFilter(kindListed), subject.RegistryFilter(kindActive))
	if err != nil {
		return err
	}
	defer w.Stop()
	seen := map[string]bool{}
	for {
		select {
		case <-life.Done():
			return nil
		case <-w.Over():
			return errWatchOver
		case m := <-w.Updates():
			switch e := bucket.EntryOf(subject.BucketRegistry, m); e {
			case nil:
				r.forget(began, seen)
				seen = nil
				ready()
				r.changed()
			default:
				if seen != nil {
					seen[e.Key] = true
				}
				r.take(e.Key, e.Value, e.Revision, !e.Gone)
			}
		}
	}
}

// marks returns the revisions of the copy's entries, by key.
func (r *registry) marks() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]uint64{}
	for kind, all := range map[id.Name]map[subject.Log]place{kindListed: r.listed, kindActive: r.active} {
		for log, p := range all {
			out[keyOf(log, kind)] = p.revision
		}
	}
	return out
}

// forget drops entries of the copy that the bucket no longer has.
func (r *registry) forget(before map[string]uint64, seen map[string]bool) {
	for key, revision := range before {
		if !seen[key] {
			r.take(key, nil, revision+1, false)
		}
	}
}

// take brings the copy up to date with one entry, unless it knows better.
func (r *registry) take(key string, value []byte, revision uint64, there bool) {
	tenant, kind, team, err := subject.ParseRegistryKey(key)
	if err != nil {
		return
	}
	log := subject.Log{Tenant: tenant, Kind: id.KindTeam, Entity: team}
	p := place{revision: revision}
	if there && json.Unmarshal(value, &p.note) != nil {
		return
	}
	r.mu.Lock()
	all := r.listed
	if kind == kindActive {
		all = r.active
	}
	old, known := all[log]
	newer := !known || revision > old.revision
	if newer && there {
		all[log] = p
	} else if newer {
		delete(all, log)
	}
	if kind == kindActive && newer && known != there {
		r.count(log, there)
	}
	r.mu.Unlock()
	if kind == kindActive && newer {
		r.changed()
	}
}

// count keeps how many nested teams of the team above are active. mu is held.
func (r *registry) count(log subject.Log, there bool) {
	above, ok := id.TeamOf(log.Entity)
	if !ok {
		return
	}
	log.Entity = above
	if there {
		r.below[log]++
	} else if r.below[log]--; r.below[log] == 0 {
		delete(r.below, log)
	}
}

func keyOf(log subject.Log, kind id.Name) string {
	return subject.RegistryKey(log.Tenant, kind, log.Entity)
}

// teams returns the teams of a tenant that are listed.
func (r *registry) teams(t id.Tenant) map[subject.Log]note {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[subject.Log]note{}
	for log, p := range r.listed {
		if log.Tenant == t {
			out[log] = p.note
		}
	}
	return out
}

// on returns the teams that are active, with the revisions of their entries.
func (r *registry) on() map[subject.Log]place {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.active)
}

// state returns the revision of the team's active entry, 0 if it has none, and whether a
// nested team of it is active.
func (r *registry) state(log subject.Log) (revision uint64, nested bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active[log].revision, r.below[log] > 0
}

// list notes a team for lists.
func (r *registry) list(ctx context.Context, log subject.Log, n note) error {
	return r.put(ctx, log, kindListed, n)
}

// activate notes that the team's members may be doing something, after all teams that
// it is nested in: what happens in it happens in them too.
func (r *registry) activate(ctx context.Context, log subject.Log) error {
	if above, nested := id.TeamOf(log.Entity); nested {
		up := log
		up.Entity = above
		if err := r.activate(ctx, up); err != nil {
			return err
		}
	}
	return r.put(ctx, log, kindActive, note{})
}

func (r *registry) put(ctx context.Context, log subject.Log, kind id.Name, n note) error {
	raw, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encode an entry of the registry: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, registryPut)
	defer cancel()
	revision, err := r.kv.Put(ctx, keyOf(log, kind), raw)
	if err != nil {
		return fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("note the team %s: %w", log, err))
	}
	r.take(keyOf(log, kind), raw, revision, true)
	return nil
}

// rest takes the team off those that are active, unless its entry is another than that
// of the revision. It reports whether it did.
func (r *registry) rest(ctx context.Context, log subject.Log, revision uint64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, registryPut)
	defer cancel()
	err := r.kv.Delete(ctx, keyOf(log, kindActive), jetstream.LastRevision(revision))
	api, refused := errors.AsType[*jetstream.APIError](err)
	switch {
	case refused && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant):
		return false, nil // another process has noted the team again
	case err != nil:
		return false, fmt.Errorf("take the team %s off the active ones: %w", log, err)
	}
	r.take(keyOf(log, kindActive), nil, revision+1, false)
	return true, nil
}

// unlist takes a team off the list. It does nothing if it is not there.
func (r *registry) unlist(ctx context.Context, log subject.Log) error {
	r.mu.Lock()
	p, there := r.listed[log]
	r.mu.Unlock()
	if !there {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, registryPut)
	defer cancel()
	if err := r.kv.Delete(ctx, keyOf(log, kindListed)); err != nil {
		return fmt.Errorf("take the team %s off the list: %w", log, err)
	}
	r.take(keyOf(log, kindListed), nil, p.revision+1, false)
	return nil
}
