package service

import (
	"errors"

	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/tools"
)

// errNoApproval is the reason of a call that needs an approval and has none.
var errNoApproval = errors.New("the call has no approval")

// allowed returns TOOL_DENIED for a call that people have to allow, unless it proves that a person has allowed exactly
// this call. The operator's policy counts here, whatever the caller knows of it; the caller can only be stricter.
func (s *Service) allowed(tool tools.Tool, call tools.Call) error {
	pending := event.PendingCall{Policy: &tool.Policy, Tainted: call.Tainted, Recorded: call.Asked, Delegated: call.Agent && tool.Agents}
	if !pending.NeedsPerson() {
		return nil
	}
	err := s.proven(call)
	if err == nil {
		return call.Changed(tool)
	}
	s.log.Warn().Err(err).Str("tool", tool.Name).Str("call_id", call.ID).Stringer("tenant", call.Tenant).Msg("tool call rejected: not approved")
	text := "The tool %s runs only after a person has approved the call."
	if call.Agent {
		text = "The tool %s runs only after a person has approved the call, and agents cannot ask for approval. The operator can open it to agents with tools.servers[].agents: true."
	}
	return fault.Newf(fault.ToolDenied, text, tool.Name).Wrap(err)
}

// proven returns nil if a gateway has signed a person's decision about exactly this call: its tenant, id, tool and
// arguments, as they are about to be used.
func (s *Service) proven(call tools.Call) error {
	a := call.Approval
	switch {
	case a == nil:
		return errNoApproval
	case a.Kind == "":
		digest := signature.DirectDigest(call.Kind, call.Server, call.Tool, call.Arguments)
		return signature.Called(s.deps.Signatures, a.Proof, call.Tenant, call.ID, digest, s.deps.Now())
	case call.Kind != "" || call.Server != "": // people are asked about offered names only
		return errNoApproval
	}
	digest := signature.Digest(call.Tool, call.Arguments)
	return signature.Approval(s.deps.Signatures, a.Proof, call.Tenant, a.Kind, a.Entity, call.ID, digest)
}
