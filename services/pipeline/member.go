package pipeline

import (
	"context"
	"encoding/json"
	"fmt"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/ledger"
)

// taskMessage is the type of the tasks that messages to members become, if those are
// agents of the swarm.
const taskMessage = "message"

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

// instruct gives a message to the agent of the swarm that the member is, as a task whose
// id follows from the run.
func (s *Service) instruct(ctx context.Context, l *ledger.Log[conversation.State], c cmd.Command, w *conversation.Work) error {
	r, a := l.State().Run(w.RunID), l.State().Agent
	history := l.State().Brief(w.ID, briefBytes).History
	data, err := json.Marshal(memberTask{
		MessageID: r.MessageID, Content: r.Content, Sender: r.Sender, Attachments: r.Attachments,
		TeamID: a.TeamID, TeamName: a.TeamName, Member: a.Name, Role: a.Role, Instructions: a.Instructions,
		Colleagues: a.Colleagues, History: history[:len(history)-1], // the last line is the message itself
	})
	if err != nil {
		return fmt.Errorf("encode a message to an agent of the swarm: %w", err)
	}
	task, err := id.ParseEntity(conversation.SwarmTask(l.Ref, w.ID))
	if err != nil {
		return fmt.Errorf("name a task for the swarm: %w", err)
	}
	return s.sendTo(ctx, c.Tenant, task, cmd.Task, cmd.CreateTask, w.ID+".create", cmd.NewTask{
		TaskID: task.String(), AgentName: a.Agent, Capabilities: a.Capabilities, TaskType: taskMessage, Data: data,
		Session: l.Ref.Entity.String(), Kind: s.kind, RunID: w.RunID,
	})
}
