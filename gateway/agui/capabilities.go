package agui

import (
	"net/http"

	"github.com/waggle-dev/waggle/gateway/edge"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// identity is the name of the model's threads, and of every agent's type.
const identity = "waggle"

// getCapabilities answers with what the threads of a request can do.
func (t server) getCapabilities(r *http.Request, c *edge.Client) (any, error) {
	if name := r.PathValue(pathAgent); name != "" {
		return t.ofAgent(r, c, name)
	}
	if team := r.PathValue(pathTeam); team != "" {
		return t.ofTeam(r, c, team)
	}
	return t.ofModel(r, c)
}

// maxSubagents bounds the agents of the swarm that capabilities name.
const maxSubagents = 200

// ofModel are the abilities of threads whose messages the model answers. It may give the tasks of a plan to agents of the swarm.
func (t server) ofModel(r *http.Request, c *edge.Client) (wire.Capabilities, error) {
	out := t.ofAny(identity)
	tools, err := t.Tools(r.Context(), c)
	if err != nil {
		return out, err
	}
	agents, err := t.Agents(r.Context(), c, maxSubagents)
	if err != nil {
		return out, err
	}
	out.Tools = wire.ToolCaps{Supported: true, ClientProvided: true, ParallelCalls: true, Items: toolsOf(tools)}
	out.MultiAgent = wire.MultiAgentCaps{Supported: true, Delegation: true}
	for _, p := range agents {
		out.MultiAgent.Subagents = append(out.MultiAgent.Subagents, wire.SubagentInfo{Name: p.Name, Description: p.Description})
	}
	out.Reasoning = wire.ReasoningCaps{Supported: true, Streaming: true}
	out.HumanInTheLoop = wire.HumanCaps{Supported: true, Approvals: true, Interventions: true, Feedback: true, Interrupts: true, ApproveWithEdits: true}
	return out, nil
}

// maxTools bounds the tools of an answer, in bytes: the rest of a page is for agents.
const maxTools = 3 << 20

// toolsOf are the first tools that fit into an answer.
func toolsOf(list []command.OfferedTool) (out []wire.Tool) {
	room := maxTools
	for _, t := range list {
		if room -= len(t.Name) + len(t.Description) + len(t.InputSchema); room < 0 {
			break
		}
		out = append(out, wire.Tool{Name: t.Name, Description: t.Description, Parameters: t.InputSchema})
	}
	return out
}

// ofAgent are the abilities of threads whose messages an agent of the swarm answers: its tools are its own.
func (t server) ofAgent(r *http.Request, c *edge.Client, name string) (wire.Capabilities, error) {
	p, err := t.Agent(r.Context(), c, name)
	if err != nil {
		return wire.Capabilities{}, err
	}
	out := t.ofAny(p.Name)
	out.Identity.Description = p.Description
	out.HumanInTheLoop = wire.HumanCaps{Supported: true, Interventions: true, Feedback: true, Interrupts: true}
	return out, nil
}

// ofAny are the abilities of all threads.
func (t server) ofAny(name string) wire.Capabilities {
	return wire.Capabilities{
		Identity: wire.Identity{Name: name, Type: identity, Version: t.version}, Transport: wire.TransportCaps{Streaming: true, Resumable: true},
	}
}

// ofTeam are the abilities of threads of a team: its members, by their paths, are its subagents.
func (t server) ofTeam(r *http.Request, c *edge.Client, team string) (wire.Capabilities, error) {
	v, err := t.Team(r.Context(), c, team)
	if err != nil {
		return wire.Capabilities{}, err
	}
	out := t.ofAny(v.Name)
	out.Identity.Description = v.Definition.Description
	out.Tools = wire.ToolCaps{Supported: true, ParallelCalls: true}
	out.MultiAgent = wire.MultiAgentCaps{Supported: true, Delegation: true, Subagents: membersOf("", v.Definition)}
	out.Reasoning = wire.ReasoningCaps{Supported: true, Streaming: true}
	out.HumanInTheLoop = wire.HumanCaps{Supported: true, Approvals: true, Interventions: true, Feedback: true, Interrupts: true}
	return out, nil
}

// membersOf are the members of a team but for its coordinator, which speaks for it, and those of teams in it.
func membersOf(route string, d event.TeamDefinition) (out []wire.SubagentInfo) {
	for _, m := range d.Members {
		switch {
		case m.Team != nil:
			out = append(out, membersOf(route+m.Name+"/", *m.Team)...)
		case route != "" || m.Name != d.Coordinator:
			out = append(out, wire.SubagentInfo{Name: route + m.Name, Description: m.Role})
		}
	}
	return out
}
