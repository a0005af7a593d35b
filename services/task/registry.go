package task

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/assignment"
)

// registry knows the agents, services and clients that are live, by the directory, and
// those that were, by its bucket. It is safe for concurrent use.
type registry struct {
	dir    *directory.Directory
	bucket *registryBucket
	index  *index

	mu           sync.Mutex
	stale        bool               // the directory has changed since participants was made
	read         map[string]reading // by the key of the member
	participants map[participantKey]cmd.Participant
	unwatch      func()
}

// participantKey names a participant of a kind and tenant.
type participantKey struct {
	tenant   id.Tenant
	kind, id string
}

// reading is the data of a member as it was read.
type reading struct {
	raw         []byte
	participant cmd.Participant
	ok          bool
	joined      uint64 // which of two members is the younger
}

func newRegistry(d *directory.Directory, x *index) *registry {
	c := &registry{dir: d, index: x, stale: true}
	c.bucket = newRegistryBucket()
	return c
}

// open begins to follow directory and registry.
func (c *registry) open(ctx context.Context, conn *bus.Conn, log zerolog.Logger) error {
	c.unwatch = c.dir.Watch(func() {
		c.mu.Lock()
		c.stale = true
		c.mu.Unlock()
	})
	return c.bucket.open(ctx, conn, log)
}

// close may be called more than once, and also if open was not.
func (c *registry) close() {
	if c.unwatch != nil {
		c.unwatch()
	}
	c.bucket.close()
}

// online returns all participants of the directory by their keys. The map must not be
// changed; it is replaced when the directory changes.
func (c *registry) online() map[participantKey]cmd.Participant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.participants == nil || c.stale {
		c.stale = false
		c.refresh()
	}
	return c.participants
}

// refresh reads the directory and decodes changed entries only. A reconnecting participant can have
// several entries: the online one counts, or else the youngest.
func (c *registry) refresh() {
	read, best := map[string]reading{}, map[participantKey]reading{}
	for _, what := range []id.Name{cmd.WhatAgent, cmd.WhatService, cmd.WhatClient} {
		for _, m := range c.dir.All(what) {
			place := what.String() + "." + m.Name.String() + "." + m.Instance.String()
			r, known := c.read[place]
			if !known || !bytes.Equal(r.raw, m.Data) {
				r = readParticipant(what, m)
			}
			r.joined = m.Joined
			read[place] = r
			if !r.ok {
				continue
			}
			key := keyOf(r.participant)
			if old, double := best[key]; !double || better(r, old) {
				best[key] = r
			}
		}
	}
	participants := make(map[participantKey]cmd.Participant, len(best))
	for key, r := range best {
		participants[key] = r.participant
	}
	c.read, c.participants = read, participants
}

func keyOf(p cmd.Participant) participantKey { return participantKey{p.Tenant, p.Kind, p.ID} }

func better(a, than reading) bool {
	if a.participant.Online != than.participant.Online {
		return a.participant.Online
	}
	return a.joined > than.joined
}

// readParticipant decodes a member of the directory. It skips an unreadable one, so that the others stay
// usable.
func readParticipant(what id.Name, m directory.Member) reading {
	r := reading{raw: m.Data}
	if json.Unmarshal(m.Data, &r.participant) != nil {
		return r
	}
	everywhere := what == cmd.WhatAgent && r.participant.Tenant.IsZero() // the built-in one
	r.ok = r.participant.ID != "" && (everywhere || !r.participant.Tenant.IsZero()) && cmd.ParticipantWhat(r.participant.Kind) == what
	if r.participant.Since.IsZero() {
		r.participant.Since = m.Started
	}
	return r
}

// agent returns an agent of the directory.
func (c *registry) agent(t id.Tenant, agent string) (cmd.Participant, bool) {
	return lookUp(c.online(), participantKey{t, cmd.ParticipantAgent, agent})
}

// lookUp returns a participant of a tenant, or one that all tenants have.
func lookUp(participants map[participantKey]cmd.Participant, key participantKey) (cmd.Participant, bool) {
	p, ok := participants[key]
	if !ok {
		p, ok = participants[participantKey{kind: key.kind, id: key.id}]
	}
	return p, ok
}

// away reports whether an agent has no connection, but its place is kept for it.
func (c *registry) away(t id.Tenant, agent string) bool {
	p, there := c.agent(t, agent)
	return there && !p.Online
}

// candidates returns the agents of a tenant, with those that are only remembered.
func (c *registry) candidates(t id.Tenant) []assignment.Candidate {
	var out []assignment.Candidate
	for _, p := range c.all(t, cmd.ParticipantAgent) {
		_, there := c.agent(t, p.ID)
		tasks, idle := c.index.load(t, p.ID)
		joined := p.Since
		if idle.After(p.Since) {
			p.Since = idle // of idle agents the one that has waited longest is next
		}
		out = append(out, assignment.Candidate{
			ID: p.ID, Name: p.Name, Registered: p.Principal != "", Capabilities: p.Capabilities, Online: p.Online, Away: there && !p.Online,
			Status: p.Status, Full: p.Full, Since: p.Since, Load: max(p.Load, tasks),
			Joined: joined, Connection: p.Connection, Knows: p.Knows, Holds: p.Holds,
		})
	}
	return out
}

// all returns the participants of a kind and tenant by name: those of the directory, and
// those that are remembered, which are offline and inactive.
func (c *registry) all(t id.Tenant, kind string) []cmd.Participant {
	found := map[string]cmd.Participant{}
	for _, p := range c.bucket.all(t, kind) {
		found[p.ID] = p
	}
	for k, p := range c.online() {
		if k.kind == kind && (k.tenant == t || k.tenant.IsZero()) {
			p.Tenant = t
			found[k.id] = p
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b cmd.Participant) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
}
