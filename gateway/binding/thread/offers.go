package thread

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Agent returns the agent of the swarm with the name: of several, one that is online if any is.
func (t *Threads) Agent(ctx context.Context, c Client, name string) (found command.Participant, err error) {
	known, f := false, command.ParticipantFilter{Prefix: name}
	for {
		page, err := t.agents(ctx, c, f)
		if err != nil {
			return found, err
		}
		for _, p := range page.Participants {
			if p.Name == name && (!known || p.Online) {
				found, known = p, true
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

// agents returns a page of the agents that the tenant of the client has.
func (t *Threads) agents(ctx context.Context, c Client, f command.ParticipantFilter) (page command.ParticipantList, err error) {
	who := c.Principal()
	filter, err := json.Marshal(f)
	if err != nil {
		return page, fmt.Errorf("encode a filter of agents: %w", err)
	}
	in := command.ParticipantRequest{Tenant: who.Tenant, Principal: who.Subject, Data: filter}
	return page, rpc.Call(ctx, t.g.Bus, command.Task, command.ListAgents, in, &page)
}
