package team

import (
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// callFinished ends.
const (
	callSucceeded = "success"
	callUnknown   = "unknown"
)

// ofSwarm are the events of tasks for agents of the swarm.
var ofSwarm = map[event.Type]build{
	event.TaskCreated:    with(swarmCreated),
	event.TaskQueued:     with(swarmQueued),
	event.TaskAssigned:   with(swarmAssigned),
	event.TaskReleased:   with(swarmReleased),
	event.TaskNotified:   with(swarmNotified),
	event.TaskMessaged:   with(swarmMessaged),
	event.TaskAsked:      with(swarmAsked),
	event.TaskAskExpired: with(swarmAskExpired),
	event.TaskFinished:   with(swarmFinished),
	event.ChildFinished:  with(childFinished),
	event.CallStarted:    with(callStarted),
	event.CallNotified:   with(callNotified),
	event.CallFinished:   with(callFinished),
}

// by says that the agent of the task did it.
func by(h event.TaskHead, list []message) []message {
	for i := range list {
		list[i].member = h.AgentName
	}
	return list
}

func swarmCreated(at *scene, d event.TaskCreatedData) []message {
	name := narrate.First(d.TaskType, "task")
	return by(d.TaskHead, one(wire.TaskPlanEvent, &wire.TaskPlanPayload{EventType: wire.TasksCreated, TeamID: at.entity, Tasks: []wire.Task{{
		ID: d.TaskID, TaskID: d.TaskID, TaskName: name, AssigneeName: narrate.First(d.AgentName, d.WantedName, d.WantedID, assistant),
		Description: narrate.Plain(d.Data), Dependencies: []string{}, FileDeliverables: []wire.Deliverable{}, Status: event.BoardNotStarted,
	}}}))
}

func swarmQueued(at *scene, d event.TaskQueuedData) []message {
	return at.taskUpdated(d.TaskID, event.BoardQueued, narrate.First(d.AgentName, assistant))
}

func swarmAssigned(at *scene, d event.TaskAssignedData) []message {
	return at.taskUpdated(d.TaskID, event.BoardInProgress, narrate.First(d.AgentName, assistant))
}

func swarmReleased(at *scene, d event.TaskReleasedData) []message {
	return at.taskUpdated(d.TaskID, event.BoardQueued, narrate.First(d.AgentName, assistant))
}

func swarmNotified(_ *scene, d event.TaskNotifiedData) []message {
	return by(d.TaskHead, one(wire.TaskNotification, &wire.NotificationPayload{SenderID: d.AgentID, Content: narrate.Plain(d.Message)}))
}

func swarmMessaged(_ *scene, d event.TaskMessagedData) []message {
	return by(d.TaskHead, one(wire.InterAgentMessage, &wire.InterAgentPayload{
		SenderAgentID: d.From, RecipientRoleName: narrate.First(d.AgentName, assistant), Content: narrate.Plain(d.Message),
		MessageType: narrate.First(d.MessageType, directMessage), InputID: d.InputID,
	}))
}

// swarmAsked is a question that takes any answer, which is the next message.
func swarmAsked(_ *scene, d event.TaskAskedData) []message {
	content := narrate.Plain(d.Message)
	if len(d.Options) > 0 && string(d.Options) != "null" {
		content += "\n" + string(d.Options)
	}
	return by(d.TaskHead, one(wire.InterAgentMessage, &wire.InterAgentPayload{
		SenderAgentID: d.AgentID, SenderAgentName: d.AgentName, RecipientRoleName: theUser, Content: content,
		MessageType: narrate.First(d.MessageType, questionType), InputID: d.InputID,
	}))
}

func swarmAskExpired(_ *scene, d event.TaskAskExpiredData) []message {
	return by(d.TaskHead, one(wire.TaskNotification, &wire.NotificationPayload{
		SenderID: "system." + string(event.TaskAskExpired), Content: "The question was not answered in time.",
	}))
}

func swarmFinished(at *scene, d event.TaskFinishedData) []message {
	who := narrate.First(d.AgentName, assistant)
	if d.Status == event.TaskEndCompleted {
		return by(d.TaskHead, joined(complete(narrate.Plain(d.Result), "", ""), at.taskUpdated(d.TaskID, event.BoardCompleted, who)))
	}
	return by(d.TaskHead, joined(failure(d.Code, d.Error), at.taskUpdated(d.TaskID, event.BoardFailed, who)))
}

// childFinished says what went wrong with a task of another agent; how it is else is
// for the log of that task.
func childFinished(_ *scene, d event.ChildFinishedData) []message {
	if d.Status == event.TaskEndCompleted {
		return nil
	}
	return by(d.TaskHead, failure(d.Code, d.Error))
}

func callStarted(_ *scene, d event.CallStartedData) []message {
	arguments := object(d.Arguments)
	return by(d.TaskHead, joined(segments(d.CallID, d.Tool, arguments), one(wire.ToolAutoExecuting, &wire.InvocationPayload{
		InvocationID: d.CallID, ToolName: d.Tool, TurnID: d.TaskID, Arguments: arguments,
	}), one(wire.ToolExecutionStarted, &wire.StartedPayload{
		InvocationID: d.CallID, ToolName: d.Tool, TurnID: d.TaskID, Arguments: arguments,
	})))
}

func callNotified(_ *scene, d event.CallNotifiedData) []message {
	entry := narrate.First(d.Message, narrate.Plain(d.Data), d.NotificationType)
	return by(d.TaskHead, toolLog(d.CallID, d.Server, entry))
}

func callFinished(at *scene, d event.CallFinishedData) []message {
	if d.Status == callSucceeded {
		return by(d.TaskHead, joined(toolLog(d.CallID, d.Tool, narrate.Plain(d.Result)), one(wire.ToolExecutionSucceeded, &wire.SucceededPayload{
			InvocationID: d.CallID, ToolName: d.Tool, TurnID: d.TaskID, Result: orNull(d.Result), DurationMS: d.DurationMS,
		})))
	}
	code := d.Code
	if d.Status == callUnknown {
		code = narrate.First(code, lost)
	}
	return by(d.TaskHead, at.toolFailure(d.TaskID, d.CallID, d.Tool, code, d.Error))
}
