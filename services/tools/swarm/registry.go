// Package swarm calls the tools of services that are connected to gateways. The directory lists the services; a service
// belongs to a tenant and may have several replicas, which share its calls.
package swarm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
	"github.com/waggle-dev/waggle/services/tools/internal/offer"
	"github.com/waggle-dev/waggle/services/tools/schema"
)

// shareOfCalls is the part of all calls that one service may have open (a fourth): a hanging service leaves room for the
// others.
const shareOfCalls = 4

// Registry follows the services in the directory and shares calls among their replicas. It is safe for concurrent use.
type Registry struct {
	conn     *bus.Conn
	dir      *directory.Directory
	log      zerolog.Logger
	now      func() time.Time
	missed   func()   // receives each dropped notification
	reserved []string // names of MCP servers
	services []string // whose tools models are offered
	rules    func(id, name string) tools.Rules
	max      int // open calls of one service

	waits Waits

	newsMu sync.Mutex    // held for moments only: the directory waits for it
	stale  bool          // the directory has changed since view was made
	news   chan struct{} // closed and replaced when the directory changes

	mu      sync.Mutex
	view    *view
	known   map[string]*replica
	schemas map[[sha256.Size]byte]compiled
	open    map[string]int       // calls by replica
	idle    map[string]time.Time // start of each idle replica's wait, for replicas that have had calls
	others  map[string]int       // calls of other processes, by replica, in the gateway's last message about it
	calls   map[serviceKey]int   // by service
	unwatch func()
}

type compiled struct {
	schema *schema.Schema
	err    error
}

// Config holds the dependencies and limits of a registry.
type Config struct {
	Conn      *bus.Conn
	Directory *directory.Directory
	Logger    zerolog.Logger
	Now       func() time.Time // the bus' clock
	MaxCalls  int              // of the tool service; one service may have a fourth of them open
	Reserved  []string         // names of MCP servers, which services' tools may not use
	Services  []string         // ids or names of the services whose tools models are offered; "*" = all
	Missed    func()           // receives each dropped notification; must not block
	// Rules returns the operator's rules for the service of that id and name; nil: the strict ones for all.
	Rules func(id, name string) tools.Rules
	Waits Waits
}

// Waits are the times after which a registry counts a call as lost. Zero values mean the defaults.
type Waits struct {
	Confirm time.Duration // for the gateway to queue a call; default 5 s
	Lost    time.Duration // for an answer after the service's connection has ended; default 2 s
	Return  time.Duration // for a replica that can repeat a lost call; default 10 s
}

func (w Waits) withDefaults() Waits {
	return Waits{cmp.Or(w.Confirm, confirmWait), cmp.Or(w.Lost, lostGrace), cmp.Or(w.Return, returnWait)}
}

// New returns a registry that does not follow the directory yet.
func New(cfg Config) *Registry {
	w := &Registry{
		conn: cfg.Conn, dir: cfg.Directory, log: cfg.Logger, now: cfg.Now, missed: cfg.Missed, services: cfg.Services, rules: cfg.Rules, max: max(1, cfg.MaxCalls/shareOfCalls),
		waits: cfg.Waits.withDefaults(), stale: true, news: make(chan struct{}),
		open: make(map[string]int), idle: make(map[string]time.Time), others: make(map[string]int), calls: make(map[serviceKey]int),
	}
	if w.rules == nil {
		w.rules = func(string, string) tools.Rules { return tools.Rules{Untrusted: true, Agents: true} }
	}
	w.reserved = append(append(w.reserved, cfg.Reserved...), tools.BuiltinServer)
	return w
}

// Follow makes the registry follow the directory until Close.
func (w *Registry) Follow() {
	end := w.dir.Watch(w.changed)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unwatch = end
}

// Close ends Follow.
func (w *Registry) Close() {
	w.mu.Lock()
	unwatch := w.unwatch
	w.unwatch = nil
	w.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
}

func (w *Registry) changed() {
	w.newsMu.Lock()
	defer w.newsMu.Unlock()
	w.stale = true
	close(w.news)
	w.news = make(chan struct{})
}

// look returns the current services, and a channel that is closed when they change.
func (w *Registry) look() (*view, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.newsMu.Lock()
	stale, news := w.stale, w.news
	w.stale = false
	w.newsMu.Unlock()
	if stale {
		w.view = w.read()
	}
	return w.view, news
}

// read makes a view of the directory. It decodes changed entries only.
func (w *Registry) read() *view {
	old, schemas := w.known, w.schemas
	w.known, w.schemas = make(map[string]*replica), make(map[[sha256.Size]byte]compiled)
	compile := func(raw json.RawMessage) (*schema.Schema, error) {
		return w.compile(raw, schemas)
	}
	var all []*replica
	for _, m := range w.dir.All(command.WhatService) {
		key := subject.DirectoryKey(m.What, m.Name, m.Instance)
		r := old[key]
		if r == nil || !bytes.Equal(r.entry, m.Data) {
			var err error
			if r, err = newReplica(key, m, w.reserved, compile); err != nil {
				w.log.Warn().Err(err).Str("member", key).Msg("ignore directory entry of other kind")
				continue
			}
			for _, err := range r.wrong {
				w.log.Warn().Err(err).Str("service", bound.Shorten(r.participant.ID, bound.Title)).Msg("drop tool")
			}
			for _, k := range r.tools {
				if u := k.Unchecked(); len(u) > 0 {
					w.log.Warn().Str("service", bound.Shorten(r.participant.ID, bound.Title)).Str("tool", k.Name).Strs("unchecked", u).Msg("skip parts of schema")
				}
			}
			r.rule(w.rules)
			r.others = max(0, r.participant.Load-w.open[r.id])
		} else {
			w.keep(r, schemas)
		}
		w.known[key] = r
		all = append(all, r)
	}
	v := newView(all, w.services)
	for id := range w.idle {
		if !v.online[id] && w.open[id] == 0 {
			delete(w.idle, id)
			delete(w.others, id)
		}
	}
	return v
}

// compile compiles a schema unless before holds it.
func (w *Registry) compile(raw json.RawMessage, before map[[sha256.Size]byte]compiled) (*schema.Schema, error) {
	sum := sha256.Sum256(raw)
	c, ok := w.schemas[sum]
	if !ok {
		c, ok = before[sum]
	}
	if !ok {
		c.schema, c.err = schema.Compile(raw)
	}
	w.schemas[sum] = c
	return c.schema, c.err
}

// keep takes over the schemas of an unchanged replica.
func (w *Registry) keep(r *replica, before map[[sha256.Size]byte]compiled) {
	for _, t := range r.participant.Tools {
		for _, raw := range []json.RawMessage{t.InputSchema, t.OutputSchema} {
			sum := sha256.Sum256(raw)
			if c, ok := before[sum]; ok {
				w.schemas[sum] = c
			}
		}
	}
}

// take reserves the replica that will run a call of the tool. It skips the replicas in not.
func (w *Registry) take(key serviceKey, own string, not map[string]bool) (*replica, error) {
	v, _ := w.look()
	svc := v.services[key]
	if svc == nil {
		return nil, fault.New(fault.ServiceNotFound)
	}
	if svc.tools[own] == nil {
		return nil, fault.Newf(fault.ToolNotFound, "The tool %s does not exist.", bound.Shorten(own, offer.MaxName))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls[key] >= w.max {
		return nil, fault.Newf(fault.ServiceBusy, "The service has %d open calls, and gets no more until some have ended.", w.max)
	}
	var able []*replica
	var list []candidate
	for _, r := range svc.replicas {
		if not[r.id] || !r.takesCalls(own) {
			continue
		}
		since, used := w.idle[r.id]
		if !used {
			since = r.participant.Since
		}
		able = append(able, r)
		list = append(list, candidate{r.id, w.open[r.id] + w.elsewhere(r), since})
	}
	i := choose(list)
	if i < 0 {
		return nil, fault.New(fault.ServiceBusy)
	}
	w.open[able[i].id]++
	w.calls[key]++
	return able[i], nil
}

// elsewhere returns the known number of other processes' calls of a replica. The directory's figure is late: it may include
// ended calls of this process. The gateway's figure is never too high. The caller holds the lock.
func (w *Registry) elsewhere(r *replica) int {
	if others, known := w.others[r.id]; known {
		return min(others, r.others)
	}
	return r.others
}

// opened returns the number of this process' calls of a replica.
func (w *Registry) opened(r *replica) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open[r.id]
}

// measured records a replica's load, which its gateway reported as it accepted a call of this process (less than 0 = not
// reported) while this process had so many calls open: those that have ended since are included.
func (w *Registry) measured(r *replica, load, open int) {
	if load < 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others[r.id] = max(0, load-max(open, w.open[r.id]))
}

// release releases a reservation of take.
func (w *Registry) release(key serviceKey, r *replica) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[r.id]--; w.open[r.id] <= 0 {
		delete(w.open, r.id)
	}
	if w.calls[key]--; w.calls[key] <= 0 {
		delete(w.calls, key)
	}
	w.idle[r.id] = time.Now()
}

// await waits for a replica that accepts a call of the tool and is not in not. It reports whether it found one.
func (w *Registry) await(ctx context.Context, key serviceKey, own string, not map[string]bool) bool {
	wait := time.NewTimer(w.waits.Return)
	defer wait.Stop()
	for {
		v, news := w.look()
		if svc := v.services[key]; svc != nil {
			for _, r := range svc.replicas {
				if !not[r.id] && r.takesCalls(own) {
					return true
				}
			}
		}
		select {
		case <-news:
		case <-wait.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// Tools returns the tools of the tenant's services, unordered.
func (w *Registry) Tools(tenant id.Tenant) (list []tools.Tool) {
	v, _ := w.look()
	for at, k := range v.offered {
		if at.tenant == tenant {
			list = append(list, k.Tool)
		}
	}
	return list
}

// Servers returns the tenant's services, sorted by id.
func (w *Registry) Servers(tenant id.Tenant) (list []tools.Server) {
	v, _ := w.look()
	for _, svc := range v.of(tenant) {
		list = append(list, svc.describe())
	}
	return list
}

// ToolsOf returns the tenant's service of that id, or else the only one of that name, and its tools, sorted by name; false
// if the tenant has none.
func (w *Registry) ToolsOf(tenant id.Tenant, server string) (tools.Server, []tools.Tool, bool) {
	v, _ := w.look()
	svc := v.find(tenant, server)
	if svc == nil {
		return tools.Server{}, nil, false
	}
	return svc.describe(), svc.offered(), true
}
