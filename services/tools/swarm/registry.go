// Package swarm calls the tools of services that are connected to gateways. The directory lists the services; a service
// belongs to a tenant and may have several replicas, which share its calls.
//
// A caller chooses the replica with the fewest open calls. The directory is late with the load, so each confirmation says
// how many of a replica's open calls belong to other callers.
package swarm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
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
	"github.com/waggle-dev/waggle/services/tools/internal/turn"
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

	turns *turn.Turns // for the checks of arguments and results

	mu       sync.Mutex
	members  map[string]*member    // entries of the directory, by key
	listed   map[id.Tenant]listing // of them, by tenant
	shelves  map[id.Tenant]*shelf  // their tools
	versions uint64                // of listings, so far
	open     map[string]int        // calls by replica
	idle     map[string]time.Time  // start of each idle replica's wait, for replicas that have had calls
	others   map[string]int        // calls of other processes, by replica, in the gateway's last message about it
	calls    map[serviceKey]int    // by service
	unwatch  func()
}

// Config holds the dependencies and limits of a registry.
type Config struct {
	Conn      *bus.Conn
	Directory *directory.Directory
	Logger    zerolog.Logger
	Now       func() time.Time // the bus' clock
	MaxCalls  int              // of one tenant; one service may have a fourth of them open
	Turns     *turn.Turns      // for the checks of arguments and results; nil = no limit
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
		waits: cfg.Waits.withDefaults(), turns: cfg.Turns, stale: true, news: make(chan struct{}),
		listed: make(map[id.Tenant]listing), shelves: make(map[id.Tenant]*shelf),
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

// look returns the current services of the tenant, and a channel that is closed when services change.
func (w *Registry) look(tenant id.Tenant) (*view, <-chan struct{}) {
	w.mu.Lock()
	w.newsMu.Lock()
	stale, news := w.stale, w.news
	w.stale = false
	w.newsMu.Unlock()
	if stale {
		w.sort()
	}
	list, s := w.listed[tenant], w.shelves[tenant]
	if s == nil && len(list.members) > 0 {
		s = &shelf{view: newView(nil, nil)}
		w.shelves[tenant] = s
	}
	w.mu.Unlock()
	if s == nil {
		return newView(nil, nil), news
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if list.version > s.version {
		s.view, s.version = w.read(s, list.members), list.version
	}
	return s.view, news
}

// sort reads the directory and lists its members by tenant. It decodes changed entries only. The caller holds the lock.
func (w *Registry) sort() {
	old := w.members
	w.members = make(map[string]*member)
	listed, online := make(map[id.Tenant]listing), make(map[string]bool)
	for _, m := range w.dir.All(command.WhatService) {
		key := subject.DirectoryKey(m.What, m.Name, m.Instance)
		n := old[key]
		if n == nil || !bytes.Equal(n.entry, m.Data) {
			var err error
			if n, err = newMember(key, m); err != nil {
				w.log.Warn().Err(err).Str("member", key).Msg("directory entry ignored: not decodable")
				continue
			}
		}
		w.members[key] = n
		of := listed[n.participant.Tenant]
		of.members = append(of.members, n)
		listed[n.participant.Tenant] = of
		online[n.id] = n.participant.Online
	}
	for tenant, now := range listed {
		before := w.listed[tenant]
		now.version = before.version
		if !slices.Equal(now.members, before.members) {
			w.versions++
			now.version = w.versions
		}
		listed[tenant] = now
	}
	for tenant := range w.shelves {
		if len(listed[tenant].members) == 0 {
			delete(w.shelves, tenant)
		}
	}
	w.listed = listed
	for id := range w.idle {
		if !online[id] && w.open[id] == 0 {
			delete(w.idle, id)
			delete(w.others, id)
		}
	}
}

// read makes a view of a tenant's members. It compiles schemas of changed ones only. The caller holds the shelf's lock.
func (w *Registry) read(s *shelf, members []*member) *view {
	old, before := s.known, s.schemas
	s.known, s.schemas = make(map[string]*replica), make(map[[sha256.Size]byte]compiled)
	compile := func(raw json.RawMessage) (*schema.Schema, error) { return s.compile(raw, before) }
	var all []*replica
	for _, m := range members {
		r := old[m.key]
		if r == nil || r.member != m {
			r = newReplica(m, w.reserved, compile)
			w.report(r)
			r.rule(w.rules)
			r.others = max(0, r.participant.Load-w.opened(r))
		} else {
			s.keep(r, before)
		}
		s.known[m.key] = r
		all = append(all, r)
	}
	return newView(all, w.services)
}

// report logs the tools that a new replica cannot offer, and the parts of schemas that are not checked.
func (w *Registry) report(r *replica) {
	service := bound.Shorten(r.participant.ID, bound.Title)
	for _, err := range r.wrong {
		w.log.Warn().Err(err).Str("service", service).Msg("tool dropped")
	}
	for _, k := range r.tools {
		if u := k.Unchecked(); len(u) > 0 {
			w.log.Warn().Str("service", service).Str("tool", k.Name).Strs("unchecked", u).Msg("parts of schema not checked")
		}
	}
}

// take reserves the replica that will run a call of the tool. It skips the replicas in not.
func (w *Registry) take(key serviceKey, own string, not map[string]bool) (*replica, error) {
	v, _ := w.look(key.tenant)
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
		return nil, fault.Newf(fault.ServiceBusy, "The service has %d open calls, which is the limit. Try again when one has ended.", w.max)
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
		v, news := w.look(key.tenant)
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
	v, _ := w.look(tenant)
	for at, k := range v.offered {
		if at.tenant == tenant {
			list = append(list, k.Tool)
		}
	}
	return list
}

// Servers returns the tenant's services, sorted by id.
func (w *Registry) Servers(tenant id.Tenant) (list []tools.Server) {
	v, _ := w.look(tenant)
	for _, svc := range v.of(tenant) {
		list = append(list, svc.describe())
	}
	return list
}

// ToolsOf returns the tenant's service of that id, or else the only one of that name, and its tools, sorted by name; false
// if the tenant has none.
func (w *Registry) ToolsOf(tenant id.Tenant, server string) (tools.Server, []tools.Tool, bool) {
	v, _ := w.look(tenant)
	svc := v.find(tenant, server)
	if svc == nil {
		return tools.Server{}, nil, false
	}
	return svc.describe(), svc.offered(), true
}
