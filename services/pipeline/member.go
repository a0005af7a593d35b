package pipeline

import (
	"context"
	"fmt"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/ledger"
)

// wakes holds the commands after which a team may have something to relay that it does
// not expect: they may come to a member past its team.
var wakes = map[id.Name]bool{
	cmd.SendMessage: true,
	cmd.Answer:      true,
	cmd.Cancel:      true,
	cmd.NoteTodos:   true,
	cmd.CloseMember: true,
}

// wake tells the team of an agent that there may be something to relay.
func (s *Service) wake(ctx context.Context, l *ledger.Log[conversation.State], c cmd.Command) error {
	if s.kind != id.KindMember || !wakes[c.Verb] {
		return nil
	}
	team, ok := id.TeamOf(l.Ref.Entity)
	if !ok {
		return nil
	}
	return s.Send(ctx, cmd.Command{
		ID: fmt.Sprintf("%s.%s.%s.wake", l.Ref.Entity, c.Verb, c.ID), Service: cmd.Team, Verb: cmd.WakeTeam, Tenant: c.Tenant, Key: team,
	})
}

// memberTask is what an agent of the swarm gets as the data of a message to it.
type memberTask struct {
	MessageID string        `json:"message_id"`
	Content   string        `json:"content"`
	Sender    *event.Sender `json:"sender,omitempty"` // absent: a user
	event.Attachments
	TeamID       string              `json:"team_id"`
	TeamName     string              `json:"team_name"`
	Member       string              `json:"member"` // its own name in the team
	Role         string              `json:"role,omitempty"`
	Instructions string              `json:"instructions,omitempty"`
	Colleagues   []event.Colleague   `json:"colleagues,omitempty"`
	History      []conversation.Line `json:"history,omitempty"` // messages to the member and its answers, oldest first
}
