package task

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/services/task/roster"
	"github.com/waggle-dev/waggle/services/tools"
)

// kindServer is the kind of MCP servers in lists.
const kindServer = tools.KindMCP

// listEnvelope bounds the size of an answer excluding its tasks.
const listEnvelope = 8 << 10

// catalogue lists the participants of the swarm and their tools.
type catalogue struct {
	*base

	tools tools.Toolbox
}

// list answers with a page of the participants of a kind that the request's tenant has. Agents and
// services that were there before are inactive.
func (c *catalogue) list(kind string) func(context.Context, cmd.ParticipantRequest) (cmd.ParticipantList, error) {
	return func(_ context.Context, in cmd.ParticipantRequest) (cmd.ParticipantList, error) {
		f, err := data[cmd.ParticipantFilter](in)
		if err != nil {
			return cmd.ParticipantList{}, err
		}
		name, own, err := cmd.ParsePlace(f.After)
		if err != nil {
			return cmd.ParticipantList{}, err
		}
		page := c.newPage(f.Limit)
		for at, more := (roster.Spot{Name: name, ID: own}), true; more; {
			var some []cmd.Participant
			if some, at, more = c.registry.Some(in.Tenant, kind, f, at, page.room()); !page.add(some) {
				break
			}
		}
		return page.list, page.err
	}
}

// participantPage collects a page of participants. It fits into a message of the bus, and has one participant at least.
type participantPage struct {
	list         cmd.ParticipantList
	limit, bytes int
	err          error
}

func (c *catalogue) newPage(limit int) *participantPage {
	return &participantPage{
		list:  cmd.ParticipantList{Participants: []cmd.Participant{}},
		limit: limit, bytes: int(c.deps.Conn.NATS().MaxPayload()) - listEnvelope,
	}
}

// room returns how many participants fill the page and show that more follow.
func (p *participantPage) room() int {
	if p.limit <= 0 {
		return roster.Found
	}
	return p.limit - len(p.list.Participants) + 1
}

// add adds participants and reports whether the page has room for more.
func (p *participantPage) add(some []cmd.Participant) bool {
	for _, one := range some {
		b, err := json.Marshal(one)
		if err != nil {
			p.err = fmt.Errorf("encode a participant: %w", err)
			return false
		}
		n := len(p.list.Participants)
		if p.bytes -= len(b) + 1; n > 0 && (n == p.limit || p.bytes < 0) {
			p.list.More = true
			return false
		}
		p.list.Participants = append(p.list.Participants, one)
	}
	return true
}

// servers answers with the MCP servers.
func (c *catalogue) servers(ctx context.Context, in cmd.ParticipantRequest) (cmd.ParticipantList, error) {
	f, err := data[cmd.ParticipantFilter](in)
	if err != nil {
		return cmd.ParticipantList{}, err
	}
	list, err := c.tools.Servers(ctx, in.Tenant, tools.KindMCP)
	if err != nil {
		return cmd.ParticipantList{}, err
	}
	all := make([]cmd.Participant, 0, len(list))
	for _, v := range list {
		all = append(all, cmd.Participant{
			Kind: kindServer, Tenant: in.Tenant, ID: v.ID, Name: v.Name, Capabilities: v.Capabilities, Description: v.Description,
			Status: v.Status, Online: v.Status == cmd.StatusActive, Since: v.Since, Extra: withType(v.Extra, v.Type),
		})
	}
	slices.SortFunc(all, func(a, b cmd.Participant) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	page := c.newPage(f.Limit)
	for _, p := range all {
		ok, err := p.Follows(f.After)
		if err != nil {
			return cmd.ParticipantList{}, err
		}
		if ok && roster.Matches(p, f) && !page.add([]cmd.Participant{p}) {
			break
		}
	}
	return page.list, page.err
}

// withType adds the type of a server to what else it said.
func withType(extra json.RawMessage, kind string) json.RawMessage {
	all := map[string]any{}
	if len(extra) > 0 && json.Unmarshal(extra, &all) != nil {
		return extra
	}
	all["type"] = kind
	return encode(all)
}

// toolsOf answers with the tools of a service or an MCP server.
func (c *catalogue) toolsOf(ctx context.Context, in cmd.ParticipantRequest) (cmd.ToolList, error) {
	d, err := data[cmd.ToolsOf](in)
	if err != nil {
		return cmd.ToolList{}, err
	}
	server, list, err := c.tools.ToolsOf(ctx, in.Tenant, d.Kind, d.Server)
	if err != nil {
		return cmd.ToolList{}, err
	}
	out := cmd.ToolList{Server: server.ID, Name: server.Name, Tools: []cmd.ParticipantTool{}}
	for _, t := range list {
		out.Tools = append(out.Tools, cmd.ParticipantTool{
			ID: t.Own, Name: t.Title, Description: t.Description, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
			Idempotent: t.Idempotent || t.ReadOnly,
		})
	}
	return out, nil
}
