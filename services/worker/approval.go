package worker

import (
	"errors"

	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/tools"
)

// forbidden returns why a call may not run, nil if it may: where people are asked first,
// they have to have allowed exactly this call of the tool as it is on offer.
func (cs *calls) forbidden(c event.ToolCall, offered tools.Tool) *fault.Fault {
	if !cs.state.Asks(c.ID) {
		return nil
	}
	asked, _ := cs.state.Approval(c.ID)
	switch {
	case !asked.Allowed():
		return fault.Newf(fault.ToolDenied, "This call was not allowed.")
	case asked.Digest != digest(c):
		return fault.Newf(fault.ToolDenied, "The approval does not match this call.")
	}
	log := cs.log.Ref
	if err := signature.Approval(cs.s.deps.Signatures, asked.Proof, log.Tenant, log.Kind, log.Entity, c.ID, digest(c)); err != nil {
		cs.s.deps.Logger.Error().Err(err).Stringer("log", log).Str("call_id", c.ID).Str("tool", c.Name).Msg("tool call rejected: approval not proven")
		return fault.Newf(fault.ToolDenied, "This call has no approval signed for a person.").Wrap(err)
	}
	if offered.Name == "" {
		return nil // the tool service says that it is not there
	}
	if f, ok := errors.AsType[*fault.Fault](cs.callOf(c).Changed(offered)); ok {
		return f
	}
	return nil
}
