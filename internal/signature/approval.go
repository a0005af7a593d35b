package signature

import (
	"encoding/json"
	"errors"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Reasons why a proof approves nothing.
var (
	errUnproved = errors.New("the approval carries no valid signature of a gateway")
	errElse     = errors.New("the approval is for another call")
	errDenied   = errors.New("the answer approves nothing")
)

// Approval returns nil if the proof shows that a person of the tenant has approved exactly one call: that of the log of
// the kind and id, with the call's id and digest. The proof is that of the event input.answered.
func Approval(v *Verifier, proof *event.Proof, tenant id.Tenant, kind id.Kind, entity id.Entity, callID, digest string) error {
	if v != nil && v.unchecked {
		return nil
	}
	if !v.Proves(tenant, proof) || proof.Verb != command.Answer.String() {
		return errUnproved
	}
	if !addressed(proof, kind, entity) {
		return errElse
	}
	var d command.AnswerQuestion
	if len(proof.Data) == 0 || json.Unmarshal(proof.Data, &d) != nil {
		return errUnproved
	}
	switch {
	case !d.Approved:
		return errDenied
	case callID == "" || digest == "" || d.CallID != callID || d.Digest != digest:
		return errElse
	}
	return nil
}

// addressed reports whether the answer went to the log. Members of teams get theirs through a team above them.
func addressed(p *event.Proof, kind id.Kind, entity id.Entity) bool {
	switch kind {
	case id.KindSession:
		return p.Service == command.Pipeline.String() && p.Key == entity.String()
	case id.KindMember:
		return p.Service == command.Team.String() && below(p.Key, entity)
	}
	return false
}

// below reports whether the member or nested team is part of the team, at any depth.
func below(team string, member id.Entity) bool {
	for {
		above, ok := id.TeamOf(member)
		if !ok || above.String() == team {
			return ok
		}
		member = above
	}
}
