// Package agents finds agents of the swarm by their names.
package agents

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Page returns a page of the agents that the tenant of the principal has, in the order of their names.
func Page(ctx context.Context, conn *bus.Conn, p auth.Principal, f command.ParticipantFilter) (page command.ParticipantList, err error) {
	filter, err := json.Marshal(f)
	if err != nil {
		return page, fmt.Errorf("encode a filter of agents: %w", err)
	}
	in := command.ParticipantRequest{Tenant: p.Tenant, Principal: p.Subject, Data: filter}
	return page, rpc.Repeat(ctx, conn, command.Task, command.ListAgents, in, &page)
}

// Named returns the agent with the name: of several, one that is online if any is. It returns AGENT_NOT_FOUND if the tenant has
// none.
func Named(ctx context.Context, conn *bus.Conn, p auth.Principal, name string) (found command.Participant, err error) {
	known, f := false, command.ParticipantFilter{Prefix: name}
	for {
		page, err := Page(ctx, conn, p, f)
		if err != nil {
			return found, err
		}
		for _, one := range page.Participants {
			if one.Name == name && (!known || one.Online) {
				found, known = one, true
			}
		}
		last := len(page.Participants) == 0 || page.Participants[len(page.Participants)-1].Name != name // longer names follow the name itself
		switch f.After = page.Next(); {
		case found.Online, known && (last || f.After == ""):
			return found, nil
		case last, f.After == "":
			return found, fault.New(fault.AgentNotFound)
		}
	}
}
