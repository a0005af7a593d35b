package participants

import (
	"encoding/json"
	"sync"

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// maxPlacements bounds the requests of one connection whose task is remembered: more than
// an agent has under way at once.
const maxPlacements = 256

// placements remembers to which tasks an agent's requests were given that name none: which
// task is meant may be another one when the agent repeats itself. The zero value is empty.
// It is safe for concurrent use.
type placements struct {
	mu    sync.Mutex
	known map[string]string
	order []string // oldest first
}

// find returns the task to which a request was given.
func (p *placements) find(request string) (task string, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	task, known = p.known[request]
	return task, known
}

func (p *placements) add(at asp.Placement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.known[at.Request]; known {
		return
	}
	if p.known == nil {
		p.known = map[string]string{}
	}
	if len(p.order) == maxPlacements {
		delete(p.known, p.order[0])
		p.order = append(p.order[:0], p.order[1:]...)
	}
	p.known[at.Request] = at.Task
	p.order = append(p.order, at.Request)
}

// incarnation returns the incarnation of an agent that takes a presence: that of the presence
// which it has, or had until a moment ago, and a new one after that was given up. An agent
// whose process is another one may number its requests from the beginning.
func (s *Swarm) incarnation(participant command.Participant) string {
	name, err := presenceName(participant.Tenant, participant.ID)
	if err != nil {
		return edge.NewID()
	}
	var youngest directory.Member
	for _, m := range s.g.Directory.Members(command.WhatAgent, name) {
		if m.Joined > youngest.Joined {
			youngest = m
		}
	}
	var former command.Participant
	if youngest.Instance != (id.Name{}) && json.Unmarshal(youngest.Data, &former) == nil && former.Incarnation != "" {
		return former.Incarnation
	}
	return edge.NewID()
}
