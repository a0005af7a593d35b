package signature

import (
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// MaxCallAge bounds the time between a person's request to run a tool and the start of the tool. A tool service
// remembers a call for as long, so that a repeat of the request gets the same result.
const MaxCallAge = 10 * time.Minute

// DirectDigest is Digest for a tool that is named with its server.
func DirectDigest(kind, server, tool string, arguments json.RawMessage) string {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	return Digest(kind+"\x00"+server+"\x00"+tool, arguments)
}

// directCall is the signed data of a request to run a tool.
type directCall struct {
	CallID string `json:"call_id"`
	Digest string `json:"digest"`
}

// Call signs the request of a person to run a tool, and returns the proof. A nil Signer has none, and one whose arguments
// are stored elsewhere cannot be proven.
func (s *Signer) Call(tenant id.Tenant, principal string, in command.ToolRequest) (*event.Proof, error) {
	if s == nil || in.ArgumentsRef != nil || in.CallID == "" {
		return nil, nil //nolint:nilnil // the call runs where no approval is needed
	}
	data, err := json.Marshal(directCall{in.CallID, DirectDigest(in.Kind, in.Server, in.Tool, in.Arguments)})
	if err != nil {
		return nil, err
	}
	c := command.Command{
		ID: in.CallID, Service: command.Task, Verb: command.RunTool, Tenant: tenant, Key: id.EntityFromExternal(in.CallID),
		Principal: principal, Data: data,
	}
	if err := s.Sign(&c); err != nil {
		return nil, err
	}
	return c.Proof(), nil
}

// Called returns nil if the proof shows that a person of the tenant has asked for exactly this call a short time before
// now.
func Called(v *Verifier, proof *event.Proof, tenant id.Tenant, callID, digest string, now time.Time) error {
	if v != nil && v.unchecked {
		return nil
	}
	if !v.Proves(tenant, proof) || proof.Service != command.Task.String() || proof.Verb != command.RunTool.String() ||
		now.Sub(proof.Time).Abs() > MaxCallAge {
		return errUnproved
	}
	var d directCall
	if json.Unmarshal(proof.Data, &d) != nil || callID == "" || d.CallID != callID || d.Digest != digest {
		return errElse
	}
	return nil
}
