package agui

import (
	"net/http"

	"github.com/waggle-dev/waggle/gateway/binding/thread"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/command"
)

// identity is the name of the model's threads, and of every agent's type.
const identity = "waggle"

// getCapabilities answers with what the threads of a request can do.
func (t server) getCapabilities(r *http.Request, c thread.Client) (any, error) {
	if name := r.PathValue(pathAgent); name != "" {
		return t.ofAgent(r, c, name)
	}
	return t.ofModel(r, c)
}

// maxSubagents bounds the agents of the swarm that capabilities name.
const maxSubagents = 200

// ofModel are the abilities of threads whose messages the model answers. It may give the tasks of a plan to agents of the swarm.
func (t server) ofModel(r *http.Request, c thread.Client) (wire.Capabilities, error) {
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

// ofAgent are the abilities of threads whose messages an agent of the swarm answers: its tools and its questions are its own.
func (t server) ofAgent(r *http.Request, c thread.Client, name string) (wire.Capabilities, error) {
	p, err := t.Agent(r.Context(), c, name)
	if err != nil {
		return wire.Capabilities{}, err
	}
	out := t.ofAny(p.Name)
	out.Identity.Description = p.Description
	return out, nil
}

// ofAny are the abilities of all threads.
func (t server) ofAny(name string) wire.Capabilities {
	return wire.Capabilities{
		Identity: wire.Identity{Name: name, Type: identity, Version: t.version}, Transport: wire.TransportCaps{Streaming: true, Resumable: true},
	}
}
