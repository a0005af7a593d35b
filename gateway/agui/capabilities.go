package agui

import (
	"net/http"

	"github.com/waggle-dev/waggle/gateway/binding/thread"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
)

// identity is the name of the model's threads, and of every agent's type.
const identity = "waggle"

// getCapabilities answers with what the threads of a request can do.
func (t server) getCapabilities(r *http.Request, c thread.Client) (any, error) {
	if name := r.PathValue(pathAgent); name != "" {
		return t.ofAgent(r, c, name)
	}
	return t.ofModel(), nil
}

// ofModel are the abilities of threads whose messages the model answers.
func (t server) ofModel() wire.Capabilities {
	out := t.ofAny(identity)
	out.Tools = wire.ToolCaps{Supported: true, ClientProvided: true, ParallelCalls: true}
	out.MultiAgent = wire.MultiAgentCaps{Supported: true, Delegation: true}
	out.Reasoning = wire.ReasoningCaps{Supported: true, Streaming: true}
	out.HumanInTheLoop = wire.HumanCaps{Supported: true, Approvals: true, Interventions: true, Feedback: true, Interrupts: true, ApproveWithEdits: true}
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
