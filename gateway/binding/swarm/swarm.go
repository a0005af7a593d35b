// Package swarm binds connections to the clients, agents and services of a swarm: their
// presence in the directory, the inbox of a client, the tasks of an agent, the calls of a
// service.
package swarm

import (
	"context"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
)

// leavePatience bounds the withdrawal of a presence: without a bus its lease runs out.
const leavePatience = time.Second

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
func (s *Swarm) Policy(codec dialect.Participants) binding.Policy {
	return binding.Policy{
		Rights: func(p auth.Principal) (enter, act bool) { return rights(codec.Kind(), p) },
		Limits: ws.Limits{Message: s.cfg.ReadLimit, Drain: maxDrain},
		Slows:  true,
	}
}

// rights says if a principal may connect, and if it may do more than watch. Agents and
// services do not connect to watch.
func rights(kind string, p auth.Principal) (enter, act bool) {
	act = p.MayAct()
	switch kind {
	case command.ParticipantAgent:
		act = act || p.Has(auth.RoleAgent)
		return act, act
	case command.ParticipantService:
		act = act || p.Has(auth.RoleService)
		return act, act
	}
	return p.MayWatch(), act
}

// leave withdraws a lease from the directory.
func (s *Swarm) leave(l *directory.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	if err := l.Leave(ctx); err != nil {
		s.g.Logger.Debug().Err(err).Msg("fail to withdraw participant from directory")
	}
}
