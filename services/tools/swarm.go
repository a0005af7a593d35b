package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// shareOfCalls is the part of all calls that one service may have open (a fourth):
// one that hangs leaves room for the others.
const shareOfCalls = 4

// swarm knows the services that are connected to the gateways, from the directory,
// and gives calls to them. It is safe for concurrent use.
type swarm struct {
	conn     *bus.Conn
	dir      *directory.Directory
	log      zerolog.Logger
	metrics  *metrics
	reserved []string // names of MCP servers
	max      int      // open calls of one service

	confirmWait, lostGrace, returnWait time.Duration

	newsMu sync.Mutex    // held for moments only: the directory waits for it
	stale  bool          // the directory has changed since view was made
	news   chan struct{} // closed and replaced when the directory changes

	mu      sync.Mutex
	view    *view
	known   map[string]*replica
	schemas map[[sha256.Size]byte]compiled
	open    map[string]int       // calls by replica
	idle    map[string]time.Time // since when, by replica; only of those that have had calls
	others  map[string]int       // calls of others, by replica, when a gateway spoke of it last
	calls   map[serviceKey]int   // by service
	unwatch func()
}

type compiled struct {
	schema *jsonschema.Schema
	err    error
}

// serviceKey names a service. A tenant's are not another's, even of the same id.
type serviceKey struct {
	tenant id.Tenant
	id     string
}

type offeredKey struct {
	tenant id.Tenant
	name   string
}

// view is the services at one moment. It is never modified.
type view struct {
	services map[serviceKey]*service
	offered  map[offeredKey]*known
	online   map[string]bool // connections, by the id of the replica
}

// service is all replicas of one id in one tenant.
type service struct {
	key      serviceKey
	replicas []*replica        // the oldest first
	tools    map[string]*known // of all replicas, the youngest's where they differ
}

func newSwarm(cfg Config, deps Deps, m *metrics) *swarm {
	w := &swarm{
		conn: deps.Conn, dir: deps.Directory, log: deps.Logger, metrics: m, max: max(1, cfg.MaxCalls/shareOfCalls),
		confirmWait: confirmWait, lostGrace: lostGrace, returnWait: returnWait, stale: true, news: make(chan struct{}),
		open: make(map[string]int), idle: make(map[string]time.Time), others: make(map[string]int), calls: make(map[serviceKey]int),
	}
	for _, c := range cfg.Servers {
		w.reserved = append(w.reserved, c.Name)
	}
	w.reserved = append(w.reserved, builtinName)
	return w
}

// follow makes look return what the directory has now, until end.
func (w *swarm) follow() {
	end := w.dir.Watch(w.changed)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unwatch = end
}

func (w *swarm) end() {
	w.mu.Lock()
	unwatch := w.unwatch
	w.unwatch = nil
	w.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
}

func (w *swarm) changed() {
	w.newsMu.Lock()
	defer w.newsMu.Unlock()
	w.stale = true
	close(w.news)
	w.news = make(chan struct{})
}

// look returns the services as they are, and a channel that is closed when that is
// no longer so.
func (w *swarm) look() (*view, <-chan struct{}) {
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

// read makes a view of the directory. What has not changed is not decoded again.
func (w *swarm) read() *view {
	old, schemas := w.known, w.schemas
	w.known, w.schemas = make(map[string]*replica), make(map[[sha256.Size]byte]compiled)
	compile := func(raw json.RawMessage) (*jsonschema.Schema, error) {
		return w.compile(raw, schemas)
	}
	var all []*replica
	for _, m := range w.dir.All(command.WhatService) {
		key := subject.DirectoryKey(m.What, m.Name, m.Instance)
		r := old[key]
		if r == nil || !bytes.Equal(r.entry, m.Data) {
			var err error
			if r, err = newReplica(key, m, w.reserved, compile); err != nil {
				w.log.Warn().Err(err).Str("member", key).Msg("an entry of the directory is no service")
				continue
			}
			for _, err := range r.wrong {
				w.log.Warn().Err(err).Str("service", shorten(r.peer.ID, maxTitle)).Msg("tool is not offered")
			}
			r.others = max(0, r.peer.Load-w.open[r.id])
		} else {
			w.keep(r, schemas)
		}
		w.known[key] = r
		all = append(all, r)
	}
	v := newView(all)
	for id := range w.idle {
		if !v.online[id] && w.open[id] == 0 {
			delete(w.idle, id)
			delete(w.others, id)
		}
	}
	return v
}

// compile compiles a schema unless it is known from before.
func (w *swarm) compile(raw json.RawMessage, before map[[sha256.Size]byte]compiled) (*jsonschema.Schema, error) {
	sum := sha256.Sum256(raw)
	c, ok := w.schemas[sum]
	if !ok {
		c, ok = before[sum]
	}
	if !ok {
		c.schema, c.err = compileSchema(raw)
	}
	w.schemas[sum] = c
	return c.schema, c.err
}

// keep takes over the schemas of a replica that has not changed.
func (w *swarm) keep(r *replica, before map[[sha256.Size]byte]compiled) {
	for _, t := range r.peer.Tools {
		for _, raw := range []json.RawMessage{t.InputSchema, t.OutputSchema} {
			sum := sha256.Sum256(raw)
			if c, ok := before[sum]; ok {
				w.schemas[sum] = c
			}
		}
	}
}

// newView sorts replicas by service.
func newView(all []*replica) *view {
	v := &view{
		services: make(map[serviceKey]*service), offered: make(map[offeredKey]*known), online: make(map[string]bool),
	}
	slices.SortFunc(all, func(a, b *replica) int {
		if c := a.peer.Since.Compare(b.peer.Since); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
	for _, r := range all {
		v.online[r.id] = r.peer.Online
		key := serviceKey{r.peer.Tenant, r.peer.ID}
		svc := v.services[key]
		if svc == nil {
			svc = &service{key: key, tools: make(map[string]*known)}
			v.services[key] = svc
		}
		svc.replicas = append(svc.replicas, r)
		for own, k := range r.tools {
			svc.tools[own] = k
		}
	}
	for _, svc := range v.sorted() {
		for _, k := range svc.tools {
			at := offeredKey{svc.key.tenant, k.Name}
			if v.offered[at] == nil { // Only a forged hash can have made two alike.
				v.offered[at] = k
			}
		}
	}
	return v
}

// sorted returns the services by tenant and id.
func (v *view) sorted() []*service {
	list := make([]*service, 0, len(v.services))
	for _, svc := range v.services {
		list = append(list, svc)
	}
	slices.SortFunc(list, func(a, b *service) int {
		if c := strings.Compare(a.key.tenant.String(), b.key.tenant.String()); c != 0 {
			return c
		}
		return strings.Compare(a.key.id, b.key.id)
	})
	return list
}

// of returns the services of a tenant, sorted by id.
func (v *view) of(tenant id.Tenant) []*service {
	return slices.DeleteFunc(v.sorted(), func(svc *service) bool { return svc.key.tenant != tenant })
}

// find returns the tenant's service of that id, or else the only one of that name.
func (v *view) find(tenant id.Tenant, server string) *service {
	if svc := v.services[serviceKey{tenant, server}]; svc != nil {
		return svc
	}
	var found *service
	for _, svc := range v.of(tenant) {
		if svc.youngest().peer.Name == server {
			if found != nil {
				return nil
			}
			found = svc
		}
	}
	return found
}

// tool returns the service's tool of that id, or else the only one of that name.
func (s *service) tool(own string) *known {
	if k := s.tools[own]; k != nil {
		return k
	}
	var found *known
	for _, k := range s.tools {
		if k.Title == own && own != "" {
			if found != nil {
				return nil
			}
			found = k
		}
	}
	return found
}

func (s *service) youngest() *replica { return s.replicas[len(s.replicas)-1] }

// statuses, the best first.
var statuses = []string{
	command.StatusActive, command.StatusBusy, command.StatusInitializing, command.StatusMaintenance, command.StatusError, command.StatusInactive,
}

// describe tells what the service is and how it is now.
func (s *service) describe() Server {
	p := s.youngest().peer
	best := len(statuses) - 1
	for _, r := range s.replicas {
		if i := slices.Index(statuses, r.peer.Status); r.peer.Online && i >= 0 {
			best = min(best, i)
		}
	}
	return Server{
		Kind: KindService, ID: p.ID, Name: p.Name, Type: typeService, Status: statuses[best],
		Capabilities: append([]string{}, p.Capabilities...), Description: p.Description, Extra: p.Extra,
		Replicas: len(s.replicas), Since: s.replicas[0].peer.Since,
	}
}

func (s *service) offered() []Tool {
	list := make([]Tool, 0, len(s.tools))
	for _, k := range s.tools {
		list = append(list, k.Tool)
	}
	sortTools(list)
	return list
}

// take reserves the replica that is to run a call of the tool. Those in not are left
// out.
func (w *swarm) take(key serviceKey, own string, not map[string]bool) (*replica, error) {
	v, _ := w.look()
	svc := v.services[key]
	if svc == nil {
		return nil, fault.New(fault.ServiceNotFound)
	}
	if svc.tools[own] == nil {
		return nil, fault.Newf(fault.ToolNotFound, "There is no tool %s.", shorten(own, maxName))
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
			since = r.peer.Since
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

// elsewhere returns how many calls of others a replica has, as far as is known. What the
// directory says is late: calls of ours that have ended since look like others' there.
// What a gateway says is never too much. The caller has locked.
func (w *swarm) elsewhere(r *replica) int {
	if others, told := w.others[r.id]; told {
		return min(others, r.others)
	}
	return r.others
}

// opened returns how many calls of ours a replica has.
func (w *swarm) opened(r *replica) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open[r.id]
}

// told notes how much a replica has to do, as its gateway said when it took a call of
// ours (less than 0 = it did not say), and we had so many open there: what has ended
// since was counted.
func (w *swarm) told(r *replica, load, open int) {
	if load < 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.others[r.id] = max(0, load-max(open, w.open[r.id]))
}

// release is take's counterpart.
func (w *swarm) release(key serviceKey, r *replica) {
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

// await waits for a replica that can be given a call of the tool, not one of those in
// not. It reports whether there is one.
func (w *swarm) await(ctx context.Context, key serviceKey, own string, not map[string]bool) bool {
	wait := time.NewTimer(w.returnWait)
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
