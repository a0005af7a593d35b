package gateway

import (
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Types of what a task's agent is told, as the Agent Swarm Protocol has them.
const (
	typeMessage = "client.message"
	typeAnswer  = "input_response"
)

// aim hands a command that a codec has addressed to a log to whoever manages logs of
// that kind. One to somebody else is returned as it is. taskID is the id of a task as
// clients know it. What cannot be asked of the kind is a *fault.Fault.
func aim(log subject.Log, taskID string, c command.Command) (command.Command, error) {
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
		return aimTeam(c)
	case id.KindMember:
		return aimMember(log.Entity, c)
	case id.KindTask:
		if c.Service == command.Pipeline {
			return aimTask(taskID, c)
		}
	}
	return c, impossible(log.Kind, c)
}

// impossible says that what a command asks for cannot be done to a run of the kind.
func impossible(k id.Kind, c command.Command) error {
	return fault.Newf(fault.UnknownType, "This cannot be asked of a run of the kind %s: %s. It takes messages, answers to its questions, and the order to stop.", k, c.Verb)
}

// aimTeam addresses a command to the team service, which has the same verbs.
func aimTeam(c command.Command) (command.Command, error) {
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

// aimMember addresses a command for an agent to its team.
func aimMember(agent id.Entity, c command.Command) (command.Command, error) {
	team, ok := id.TeamOf(agent)
	switch {
	case !ok:
		return c, fault.Newf(fault.AgentNotFound, "This agent belongs to no team. It cannot be spoken to here.")
	case c.Service == command.Team:
		return c, impossible(id.KindMember, c)
	}
	c, err := aimTeam(c)
	if err != nil {
		return c, impossible(id.KindMember, c)
	}
	c.Key, c.Member = team, agent.String()
	return c, nil
}

// aimTask makes of a command what the client of a swarm's task would send. The service
// takes it in nobody's name: whoever sends it is not the client that has made the task.
func aimTask(taskID string, c command.Command) (command.Command, error) {
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

// taskAnswer is an answer to the question of a task's agent, given in a protocol that
// knows approval and a text.
type taskAnswer struct {
	Approved bool   `json:"approved"`
	Text     string `json:"text,omitempty"`
}

// taskText returns a message as the agent of a task is told it: a text, or an object
// if something goes with it.
func taskText(d command.UserMessage) (json.RawMessage, error) {
	if len(d.ContextFiles) == 0 && len(d.ImageURLs) == 0 {
		return json.Marshal(d.Content)
	}
	return json.Marshal(struct {
		Text string `json:"text"`
		event.Attachments
	}{d.Content, d.Attachments})
}
