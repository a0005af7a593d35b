package pipeline

import (
	"context"
	"encoding/json"
	"fmt"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/ledger"
)

// taskMessage is the type of the tasks that messages to agents of the swarm become.
const taskMessage = "message"

// maxInstruction bounds the data of a task that a message becomes: an event holds 256 KiB, with the service's additions.
const maxInstruction = 240 << 10

// sessionTask is the data of a user's message to an agent of the swarm. Members of the message that Waggle
// has no word for stand beside these.
type sessionTask struct {
	MessageID string `json:"message_id"`
	Content   string `json:"content"`
	event.Attachments
	SessionID string              `json:"session_id"`
	Facts     []event.Fact        `json:"facts,omitempty"`   // that the client tells beside the message
	History   []conversation.Line `json:"history,omitempty"` // the conversation before the message, oldest first
}

// ownMembers are the names of its members, which no message can forge.
var ownMembers = []string{"message_id", "content", "context_files", "image_urls", "session_id", "facts", "history"}

// instruct gives a message to the agent of the swarm that answers it, as a task whose id follows from the run.
func (s *Service) instruct(ctx context.Context, l *ledger.Log[conversation.State], c cmd.Command, w *conversation.Job) error {
	r := l.State().Run(w.RunID)
	history := l.State().Brief(w.ID, briefBytes).History
	history = history[:len(history)-1] // the last line is the message itself
	task, err := id.ParseEntity(conversation.SwarmTask(l.Ref, w.ID))
	if err != nil {
		return fmt.Errorf("name a task for the swarm: %w", err)
	}
	t := cmd.NewTask{TaskID: task.String(), AgentName: r.Spec.Agent, TaskType: taskMessage, Session: l.Ref.Entity.String(), RunID: w.RunID, Owner: l.State().Owner()}
	if a := l.State().Agent; a != nil {
		t.AgentName, t.Capabilities, t.Kind = a.Agent, a.Capabilities, s.kind
		t.Data, err = memberMessage(r, a, history)
	} else {
		t.Data, err = sessionMessage(r, l.Ref.Entity, history)
	}
	switch {
	case err != nil:
		return fmt.Errorf("encode a message to an agent of the swarm: %w", err)
	case len(t.Data) > maxInstruction:
		return s.send(ctx, c, s.name, cmd.AbandonJob, w.ID+".dead", cmd.AbandonedJob{
			JobRef: s.ref(w), Code: string(fault.MessageTooBig), Reason: "a task cannot hold the message",
		})
	}
	return s.sendTo(ctx, c.Tenant, task, cmd.Task, cmd.CreateTask, w.ID+".create", t)
}

func memberMessage(r *conversation.Run, a *event.MemberCreatedData, history []conversation.Line) (json.RawMessage, error) {
	return json.Marshal(memberTask{
		MessageID: r.MessageID, Content: r.Content, Sender: r.Sender, Attachments: r.Attachments,
		TeamID: a.TeamID, TeamName: a.TeamName, Member: a.Name, Role: a.Role, Instructions: a.Instructions,
		Colleagues: a.Colleagues, History: history,
	})
}

func sessionMessage(r *conversation.Run, session id.Entity, history []conversation.Line) (json.RawMessage, error) {
	own, err := json.Marshal(sessionTask{
		MessageID: r.MessageID, Content: r.Content, Attachments: r.Attachments, SessionID: session.String(), Facts: r.Spec.Facts, History: history,
	})
	var all map[string]json.RawMessage
	if err != nil || json.Unmarshal(r.Spec.Extra, &all) != nil || len(all) == 0 { // the message has no such members
		return own, err
	}
	for _, name := range ownMembers {
		delete(all, name)
	}
	if err := json.Unmarshal(own, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}
