// Package participants binds connections to the clients, agents and services of a swarm: their
// presence in the directory, the inbox of a client, the tasks of an agent, the calls of a
// service.
//
// A lost connection keeps its presence for a grace of 15 s (gateway.peers.grace), because moving all tasks of an agent at
// once would repeat their work; an agent that unregisters loses it at once. If an agent connects twice, the revision of
// each connection's first entry in the directory says which is the newer one, whatever the clocks of the gateways say.
//
// A frame that is too large fails its task or call and leaves the connection open: the gateway reads it to its end in fixed
// memory, and its first and last 4 KiB tell which frame it is.
package participants

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// leaveMaxWait bounds the withdrawal of a presence: without a bus its lease runs out.
const leaveMaxWait = time.Second

// Swarm holds the presences of one gateway. All methods may be called concurrently.
type Swarm struct {
	g     *binding.Gateway
	cfg   Config
	moved chan struct{} // the directory has changed: look for lost presences

	mu        sync.Mutex
	presences map[*presence]struct{}
}

// New returns the swarm of a gateway. The configuration has its defaults.
func New(g *binding.Gateway, cfg Config) *Swarm {
	return &Swarm{g: g, cfg: cfg, moved: make(chan struct{}, 1), presences: map[*presence]struct{}{}}
}

// Count returns the number of presences, also of participants that are away for a moment.
func (s *Swarm) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.presences)
}

// Policy returns the policy of connections of the codec. They read more slowly beyond their
// rate and their quota: an error that they do not expect ends programs that use the SDKs.
func (s *Swarm) Policy(codec *asp.Codec) binding.Policy {
	return binding.Policy{
		Rights: func(p auth.Principal) (enter, act bool) { return rights(codec.Kind(), p) },
		Limits: ws.Limits{Message: s.cfg.ReadLimit, Drain: maxDrain},
		Slows:  true,
	}
}

// rights says if a principal may connect, and if it may do more than watch. Only principals of
// the role agent or service are agents or services: a user's key must not answer for them.
func rights(kind string, p auth.Principal) (enter, act bool) {
	act = p.MayAct()
	switch kind {
	case command.ParticipantAgent:
		return p.Has(auth.RoleAgent), p.Has(auth.RoleAgent)
	case command.ParticipantService:
		return p.Has(auth.RoleService), p.Has(auth.RoleService)
	}
	return p.MayWatch(), act
}

// leave withdraws a lease from the directory.
func (s *Swarm) leave(l *directory.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), leaveMaxWait)
	defer cancel()
	if err := l.Leave(ctx); err != nil {
		s.g.Logger.Debug().Err(err).Msg("failed to remove participant from directory")
	}
}

// Config says what clients, agents and services of the swarm may do. Zero fields
// mean the defaults.
type Config struct {
	Grace time.Duration // how long a participant that is away keeps its presence, default 15 s
	Ping  time.Duration // how often a participant is pinged, default 15 s
	Dead  time.Duration // how long a participant may be silent, default 45 s
	Rate  float64       // frames per second of one participant: more wait, default 200
	Burst int           // frames that may come at once, default 400
	Calls int           // calls that one replica of a service has at a time, default 256
	Asks  int           // tools that one participant waits for at a time outside of tasks, default 32

	ReadLimit int64               // largest frame in bytes, default 1 MiB: a larger one has no effect but that the task fails of which it is the result
	Names     map[string][]string // reserved names and ids, with the subjects of the principals that may have them

	LargeFrames int // frames beyond Config.ReadLimit that this gateway reads or handles at a time: more wait, default 32
}

// mail holds the direct messages for a participant that wait until the data before them is
// loaded, in order. A goroutine handles them and ends with the last one.
type mail struct {
	mu      sync.Mutex
	waiting []letter
	bytes   int
	busy    bool
	over    bool
}

// letter is one direct message.
type letter struct {
	about subject.Log
	event event.Event
}

// end drops what waits and what comes.
func (m *mail) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting, m.bytes, m.over = nil, 0, true
}

// maxDrain is the largest frame of a participant that is skipped. A larger one ends its socket: at
// some size the participant does not send a result but floods.
const maxDrain = 16 << 20

// presence is the entry of a participant in the directory. It outlives the participant's socket for a
// while, in case that the participant comes back.
type presence struct {
	s       *Swarm
	what    id.Name
	name    id.Name
	self    id.Name // of the connection
	lease   *directory.Lease
	changes *rate.Limiter

	mu          sync.Mutex
	participant command.Participant
	stale       bool        // the directory has not been told of the last change
	said        bool        // a change that the participant asked for may not be in this copy of the directory
	away        *time.Timer // ends the presence of a participant whose socket is gone
	over        bool        // it is given up
}
