package thread

import (
	"context"

	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/agents"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Agent returns the agent of the swarm with the name: of several, one that is online if any is.
func (t *Threads) Agent(ctx context.Context, c *edge.Client, name string) (command.Participant, error) {
	return agents.Named(ctx, t.g.Bus, c.Principal(), name)
}

// Agents returns the first agents of the swarm in the order of their names, at most limit, each name once. Without a service of the
// swarm it returns none.
func (t *Threads) Agents(ctx context.Context, c *edge.Client, limit int) (out []command.Participant, err error) {
	for f := (command.ParticipantFilter{}); t.runs(command.Task); {
		page, err := agents.Page(ctx, t.g.Bus, c.Principal(), f)
		if err != nil {
			return nil, err
		}
		for _, p := range page.Participants {
			switch n := len(out); {
			case n > 0 && out[n-1].Name == p.Name:
			case n == limit:
				return out, nil
			default:
				out = append(out, p)
			}
		}
		if f.After = page.Next(); f.After == "" {
			break
		}
	}
	return out, nil
}

// Team returns a team as it is.
func (t *Threads) Team(ctx context.Context, c *edge.Client, team string) (v command.TeamView, err error) {
	who := c.Principal()
	in := command.TeamRequest{Tenant: who.Tenant, Principal: who.Subject, All: c.SeesAll(), TeamID: team}
	err = c.Ask(ctx, edge.Request{Service: command.Team, Verb: command.ShowTeam, In: in, Repeats: true}, &v)
	return v, err
}

// Tools returns the tools that the model is offered in threads of the client's tenant. Without a tool service it returns none.
func (t *Threads) Tools(ctx context.Context, c *edge.Client) (out []command.OfferedTool, err error) {
	for in := (command.ToolOfferRequest{Tenant: c.Principal().Tenant}); t.runs(command.Tools); {
		var page command.ToolOffer
		if err := c.Ask(ctx, edge.Request{Service: command.Tools, Verb: command.OfferTools, In: in, Repeats: true}, &page); err != nil {
			return nil, err
		}
		out = append(out, page.Tools...)
		if !page.More || len(page.Tools) == 0 {
			break
		}
		in.After = page.Tools[len(page.Tools)-1].Name
	}
	return out, nil
}

// runs reports whether the installation has the service.
func (t *Threads) runs(service id.Name) bool {
	return t.g.Directory == nil || len(t.g.Directory.Members(directory.WhatService, service)) > 0
}
