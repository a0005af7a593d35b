package command

import "github.com/waggle-dev/waggle/proto-schemas/event"

// maxProofData bounds the data in a proof, so that an event holds the feedback of an answer twice and is still small
// enough. Larger data, such as an edited plan, is represented by its digest.
const maxProofData = 48 << 10

// Proof returns the proof that a person asked for the command: its own signature, or that of the command that it was
// derived from. It returns nil without a signature.
func (c Command) Proof() *event.Proof {
	if c.Signature == "" {
		return c.Origin
	}
	p := &event.Proof{
		Service: c.Service.String(), Verb: c.Verb.String(), Key: c.Key.String(), Member: c.Member, Principal: c.Principal, Operator: c.Operator,
		CommandID: c.ID, Request: c.Request, Time: c.Time, Signature: c.Signature,
	}
	if p.Data = c.Data; len(c.Data) > maxProofData {
		return p.Short()
	}
	return p
}
