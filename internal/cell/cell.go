// Package cell maps the tenants of an installation to cells, and lists the gateways of each cell.
//
// An installation of several cells has one NATS cluster for each, and a small control cluster. The control cluster holds two
// buckets: the cell of each tenant, and the leases of all gateways. Each process keeps a copy of both, and continues with its
// last copy while the control cluster is gone.
//
// The state of a tenant changes by compare-and-set only: of two processes that begin a move, one succeeds. A gateway reports
// the revision up to which it has carried out all changes, so that a move begins to copy when no gateway serves the tenant.
package cell

import (
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
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// whatGateway marks the leases of gateways in the control cluster; their name is the cell.
var whatGateway = id.MustName("cell")

var (
	// ErrChanged means that another process has changed the tenant's entry meanwhile.
	ErrChanged = errors.New("the tenant's entry has changed meanwhile")
	// ErrMoving means that the tenant moves already.
	ErrMoving = errors.New("the tenant is already being moved")
	// ErrAssigned means that the tenant has a cell.
	ErrAssigned = errors.New("the tenant already has a cell")
)

// Place is the cell of a tenant.
type Place struct {
	Cell  id.Name   `json:"cell"`            // serves the tenant, or did until the move began
	To    id.Name   `json:"to,omitzero"`     // the aim of a move; zero = the tenant does not move
	Since time.Time `json:"since,omitempty"` // by the clock of the process that wrote the entry: show it, do not compare it

	Revision uint64 `json:"-"` // of the entry; 0 = the tenant has none, and belongs to the default cell
}

// Moving reports whether the tenant moves, so that no cell serves it.
func (p Place) Moving() bool { return !p.To.IsZero() }

// Assignment is the place of a tenant that has an entry.
type Assignment struct {
	Tenant id.Tenant
	Place
}

// Gateway is a live gateway of a cell.
type Gateway struct {
	Instance id.Name `json:"-"`
	URL      string  `json:"url"`
	Seen     uint64  `json:"seen"` // the revision up to which it has carried out all changes
	Draining bool    `json:"draining,omitempty"`
}

// Directory is a copy of the cells of tenants and of the gateways of cells. It is safe for concurrent use.
type Directory struct {
	usual    id.Name // the cell of tenants without an entry
	kv       jetstream.KeyValue
	gateways *directory.Directory
	copy     *bucket.Follower[Place]

	mu       sync.Mutex
	places   map[string]Place
	revision uint64 // of the newest write in the copy
	watch    map[int]func()
	next     int
	turn     map[id.Name]int // the last gateway of each cell
}

// Open creates the buckets if they are missing, and returns when the copy is complete. usual is the cell of tenants without an
// entry.
func Open(ctx context.Context, c *bus.Conn, usual id.Name) (*Directory, error) {
	if err := bus.BootstrapControl(ctx, c, bus.DefaultTopology()); err != nil {
		return nil, fmt.Errorf("prepare the control cluster: %w", err)
	}
	kv, err := c.Bucket(ctx, subject.BucketCells)
	if err != nil {
		return nil, fmt.Errorf("open the cells of tenants: %w", err)
	}
	d := &Directory{usual: usual, kv: kv, places: map[string]Place{}, watch: map[int]func(){}, turn: map[id.Name]int{}}
	if d.gateways, err = directory.Open(ctx, c); err != nil {
		return nil, fmt.Errorf("open the gateways of cells: %w", err)
	}
	d.copy, err = bucket.Follow(ctx, bucket.Config{Conn: c, KV: kv, Name: "the cells of tenants", Reached: d.reached}, follower{d})
	if err != nil {
		d.gateways.Close() //nolint:contextcheck // ending takes a context of its own
		return nil, err
	}
	return d, nil
}

// Close ends the copies.
func (d *Directory) Close() {
	d.copy.Close()
	d.gateways.Close()
}

// Place returns the place of a tenant in the copy.
func (d *Directory) Place(t id.Tenant) Place {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p, ok := d.places[t.String()]; ok {
		return p
	}
	return Place{Cell: d.usual}
}

// Assignments returns all tenants that have an entry, by name.
func (d *Directory) Assignments() []Assignment {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Assignment
	for key, p := range d.places {
		if t, err := id.ParseTenant(key); err == nil {
			out = append(out, Assignment{t, p})
		}
	}
	slices.SortFunc(out, func(a, b Assignment) int { return strings.Compare(a.Tenant.String(), b.Tenant.String()) })
	return out
}

// Cells returns the cells that have live gateways, by name.
func (d *Directory) Cells() []id.Name {
	var out []id.Name
	for _, m := range d.gateways.All(whatGateway) {
		if !slices.Contains(out, m.Name) {
			out = append(out, m.Name)
		}
	}
	return out
}

// Gateways returns the live gateways of a cell.
func (d *Directory) Gateways(cell id.Name) []Gateway {
	var out []Gateway
	for _, m := range d.gateways.Members(whatGateway, cell) {
		var g Gateway
		if json.Unmarshal(m.Data, &g) == nil {
			g.Instance = m.Instance
			out = append(out, g)
		}
	}
	return out
}

// Next returns the addresses of the gateways of a cell to try, in turn. Draining gateways come last.
func (d *Directory) Next(cell id.Name) []string {
	all := d.Gateways(cell)
	if len(all) == 0 {
		return nil
	}
	d.mu.Lock()
	d.turn[cell]++
	first := d.turn[cell] % len(all)
	d.mu.Unlock()
	var out, last []string
	for i := range all {
		g := all[(first+i)%len(all)]
		if g.Draining {
			last = append(last, g.URL)
		} else {
			out = append(out, g.URL)
		}
	}
	return append(out, last...)
}

// Revision returns the revision of the newest change in the copy.
func (d *Directory) Revision() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.revision
}

// Watch calls f after every change of a place, one call at a time. f must not block.
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

// WaitGateways returns nil when the predicate holds for the gateways of a cell, or ctx's error.
func (d *Directory) WaitGateways(ctx context.Context, cell id.Name, pred func([]Gateway) bool) error {
	return d.gateways.Wait(ctx, func(*directory.Directory) bool { return pred(d.Gateways(cell)) })
}

// Lease keeps a gateway listed.
type Lease struct {
	lease *directory.Lease

	mu  sync.Mutex
	now Gateway
}

// Join lists a gateway of a cell until Leave.
func (d *Directory) Join(ctx context.Context, cell, instance id.Name, url string) (*Lease, error) {
	g := Gateway{URL: url, Seen: d.Revision()}
	data, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	l, err := d.gateways.Join(ctx, directory.Member{What: whatGateway, Name: cell, Instance: instance, Data: data})
	if err != nil {
		return nil, fmt.Errorf("join the gateways of the cell %s: %w", cell, err)
	}
	return &Lease{lease: l, now: g}, nil
}

// Saw reports that the gateway has carried out all changes up to a revision. It does not block.
func (l *Lease) Saw(revision uint64) error {
	return l.change(func(g *Gateway) bool {
		newer := revision > g.Seen
		g.Seen = max(g.Seen, revision)
		return newer
	})
}

// Drain reports that the gateway is draining: others prefer the other gateways of its cell.
func (l *Lease) Drain() error {
	return l.change(func(g *Gateway) bool {
		before := g.Draining
		g.Draining = true
		return !before
	})
}

func (l *Lease) change(f func(*Gateway) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !f(&l.now) {
		return nil
	}
	data, err := json.Marshal(l.now)
	if err != nil {
		return err
	}
	return l.lease.Set(data)
}

// Leave removes the gateway. After an error its lease expires by itself.
func (l *Lease) Leave(ctx context.Context) error { return l.lease.Leave(ctx) }

// changed tells all watchers.
func (d *Directory) changed() {
	d.mu.Lock()
	fs := make([]func(), 0, len(d.watch))
	for _, f := range d.watch {
		fs = append(fs, f)
	}
	d.mu.Unlock()
	for _, f := range fs {
		f()
	}
}

func (d *Directory) reached(revision uint64) {
	d.mu.Lock()
	d.revision = max(d.revision, revision)
	d.mu.Unlock()
	d.changed()
}

// follower makes the directory the owner of a copy of the bucket.
type follower struct{ d *Directory }

// Decode implements bucket.Owner. The copy keeps no entry that names no cell.
func (follower) Decode(key string, value []byte) (p Place, ok bool) {
	_, err := id.ParseTenant(key)
	return p, err == nil && json.Unmarshal(value, &p) == nil && !p.Cell.IsZero()
}

// Replace implements bucket.Owner.
func (f follower) Replace(all map[string]bucket.Entry[Place]) {
	places := make(map[string]Place, len(all))
	for key, e := range all {
		places[key] = placed(e)
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.places = places
}

// Apply implements bucket.Owner.
func (f follower) Apply(c bucket.Change[Place]) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if c.Gone {
		delete(f.d.places, c.Key)
		return
	}
	f.d.places[c.Key] = placed(c.Entry)
}

func placed(e bucket.Entry[Place]) Place {
	e.Value.Revision = e.Revision
	return e.Value
}
