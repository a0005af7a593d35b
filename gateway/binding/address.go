package binding

import (
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Types of messages to a task's agent in the Agent Swarm Protocol.
const (
	typeMessage = "client.message"
	typeAnswer  = "input_response"
)

// address returns a command, which a codec has addressed to a log, for the service that
// manages logs of that kind. It returns a command to another log as it is. taskID is the id
// of a task as clients know it. The error is a *fault.Fault where the kind does not take
// the command.
func address(log subject.Log, taskID string, c command.Command) (command.Command, error) {
	if c.Key != log.Entity || c.Service != command.Pipeline && c.Service != command.Team {
		return c, nil
	}
	switch log.Kind {
	case id.KindSession:
		if c.Service == command.Pipeline {
			return c, nil
		}
	case id.KindTeam:
		if c.Service == command.Team {
			return c, nil
		}
		return addressTeam(c)
	case id.KindMember:
		return addressMember(log.Entity, c)
	case id.KindTask:
		if c.Service == command.Pipeline {
			return addressTask(taskID, c)
		}
	}
	return c, impossible(log.Kind, c)
}

// impossible returns the fault of a command that no run of the kind takes.
func impossible(k id.Kind, c command.Command) error {
	return fault.Newf(fault.UnknownType, "This cannot be asked of a run of the kind %s: %s. It takes messages, answers to its questions, and the order to stop.", k, c.Verb)
}

// addressTeam addresses a command to the team service, which has the same verbs.
func addressTeam(c command.Command) (command.Command, error) {
	switch c.Verb {
	case command.SendMessage, command.Cancel, command.Answer:
	case command.CancelPlan: // it has the data of Cancel
		c.Verb = command.Cancel
	default:
		return c, impossible(id.KindTeam, c)
	}
	c.Service = command.Team
	return c, nil
}

// addressMember addresses a command for an agent to its team.
func addressMember(agent id.Entity, c command.Command) (command.Command, error) {
	team, ok := id.TeamOf(agent)
	switch {
	case !ok:
		return c, fault.Newf(fault.AgentNotFound, "This agent belongs to no team. It cannot be spoken to here.")
	case c.Service == command.Team:
		return c, impossible(id.KindMember, c)
	}
	c, err := addressTeam(c)
	if err != nil {
		return c, impossible(id.KindMember, c)
	}
	c.Key, c.Member = team, agent.String()
	return c, nil
}

// addressTask turns a command into the one that the client of a swarm's task would send. The
// command names no client: its sender is not the one that made the task.
func addressTask(taskID string, c command.Command) (command.Command, error) {
	data, err := taskData(taskID, c)
	if err != nil {
		return c, err
	}
	c.Service, c.Verb = command.Task, command.MessageTask
	if _, stops := data.(command.CancelTaskData); stops {
		c.Verb = command.CancelTask
	}
	if c.Data, err = json.Marshal(data); err != nil {
		return c, fmt.Errorf("encode %s for a task: %w", c.Verb, err)
	}
	return c, nil
}

func taskData(taskID string, c command.Command) (any, error) {
	switch c.Verb {
	case command.SendMessage:
		var d command.UserMessage
		if err := c.Decode(&d); err != nil {
			return nil, err
		}
		text, err := taskText(d)
		return command.TaskMessage{TaskID: taskID, MessageType: typeMessage, Message: text}, err
	case command.Answer:
		var d command.AnswerQuestion
		if err := c.Decode(&d); err != nil {
			return nil, err
		}
		answer, err := json.Marshal(taskAnswer{Approved: d.Approved, Text: d.Feedback})
		return command.TaskMessage{TaskID: taskID, RequestID: d.InputID, MessageType: typeAnswer, Message: answer}, err
	case command.Cancel, command.CancelPlan:
		var d command.CancelRun
		if err := c.Decode(&d); err != nil {
			return nil, err
		}
		return command.CancelTaskData{TaskID: taskID, Reason: d.Reason}, nil
	}
	return nil, impossible(id.KindTask, c)
}

// taskAnswer is an answer to the question of a task's agent from a protocol with approvals
// and texts.
type taskAnswer struct {
	Approved bool   `json:"approved"`
	Text     string `json:"text,omitempty"`
}

// taskText returns a message in the form for a task's agent: a text, or an object with the
// attachments.
func taskText(d command.UserMessage) (json.RawMessage, error) {
	if len(d.ContextFiles) == 0 && len(d.ImageURLs) == 0 {
		return json.Marshal(d.Content)
	}
	return json.Marshal(struct {
		Text string `json:"text"`
		event.Attachments
	}{d.Content, d.Attachments})
}
