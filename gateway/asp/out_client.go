package asp

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Types of notifications that the server makes, and their level.
const (
	notifyStatus = "status"
	levelInfo    = "info"
	levelWarning = "warning"
)

// done answers the client's cancel. Other notices are about sessions.
func done(e event.Event, d event.NoticeData) []wire.Frame {
	if e.Sequence != 0 || d.Action != command.CancelTask.String() {
		return nil
	}
	return frames(wire.TaskCancelResponse, requestOf(e.ID), wire.TaskCancelContent{TaskID: first(d.TaskID, d.StepID), Status: statusCancelled, Message: "The task is cancelled"})
}

func clientMessage(e event.Event, d event.InboxMessagedData) []wire.Frame {
	return frames(wire.ClientMessage, "", wire.ClientMessageContent{
		MessageID: d.MessageID, Sender: wire.Party{Type: command.ParticipantClient, ID: d.SenderID, Name: d.SenderName}, SenderClientID: d.SenderID,
		TargetClientID: d.TargetID, MessageType: d.MessageType, Data: d.Data, ExpiresAt: wire.Stamp(d.ExpiresAt), Timestamp: wire.Stamp(e.Time),
	})
}

// taskCreated answers the request for a task. A child task is told of by its parent.
func taskCreated(e event.Event, d event.TaskCreatedData) []wire.Frame {
	if d.ParentID != "" {
		return nil
	}
	return frames(wire.TaskCreateResponse, d.RequestID, wire.TaskCreatedContent{
		TaskID: d.TaskID, AgentID: first(d.AgentID, d.ExpectedID, d.WantedID), AgentName: first(d.AgentName, d.ExpectedName, d.WantedName),
		Status: statusCreated, CreatedAt: wire.Stamp(e.Time), Message: "Task successfully created",
	})
}

// note is a notification that the server makes.
func note(e event.Event, h event.TaskHead, level, text string, data wire.StatusData) []wire.Frame {
	data.Attempt = h.Attempt
	n := notification(e, h)
	n.NotificationType, n.Message, n.Data, n.Level = notifyStatus, quoted(text), strict.Encoded(data), level
	return frames(wire.TaskNotification, "", n)
}

// notification fills in what all notifications have. That of a child task is also one
// about its parent.
func notification(e event.Event, h event.TaskHead) wire.TaskNotificationContent {
	n := wire.TaskNotificationContent{TaskID: h.TaskID, AgentID: h.AgentID, AgentName: h.AgentName, Timestamp: wire.Stamp(e.Time)}
	if h.ParentID != "" {
		n.ParentTaskID, n.ChildTaskID, n.ChildAgentName, n.IsChild = h.ParentID, h.TaskID, h.AgentName, true
	}
	return n
}

func taskQueued(e event.Event, d event.TaskQueuedData) []wire.Frame {
	return note(e, d.TaskHead, levelInfo, "The task waits for an agent", wire.StatusData{Status: statusQueued, Reason: d.Reason})
}

func taskAssigned(e event.Event, d event.TaskAssignedData) []wire.Frame {
	return note(e, d.TaskHead, levelInfo, "The task has an agent", wire.StatusData{Status: statusRunning})
}

func taskReleased(e event.Event, d event.TaskReleasedData) []wire.Frame {
	return note(e, d.TaskHead, levelWarning, "The agent disconnected; the task goes to another agent", wire.StatusData{Status: statusQueued, Reason: d.Reason})
}

// taskReported tells what the agent says. That it has got the task is said by the task
// service, and of no use to a client.
func taskReported(e event.Event, d event.TaskReportedData) []wire.Frame {
	if d.Status == statusDelivered {
		return nil
	}
	return note(e, d.TaskHead, levelInfo, "The agent reports a status", wire.StatusData{Status: d.Status, Progress: d.Progress})
}

func taskAskExpired(e event.Event, d event.TaskAskExpiredData) []wire.Frame {
	return note(e, d.TaskHead, levelWarning, "The question was not answered in time; the task goes on",
		wire.StatusData{Status: statusRunning, Reason: string(fault.InputExpired), InputID: d.InputID})
}

// notified returns what tells of a notification of an agent: with its message as it is,
// or as a text with the rest beside it.
func notified(raw bool) func(event.Event, event.TaskNotifiedData) []wire.Frame {
	return func(e event.Event, d event.TaskNotifiedData) []wire.Frame {
		out := taskNotified(e, d)
		if n, ok := out[0].Content.(wire.TaskNotificationContent); ok && raw {
			n.Message, n.Notification = orNull(d.Message), nil
			out[0].Content = n
		}
		return out
	}
}

func taskNotified(e event.Event, d event.TaskNotifiedData) []wire.Frame {
	n := notification(e, d.TaskHead)
	n.NotificationType, n.Data = first(d.NotificationType, levelInfo), d.Data
	n.Message, n.Notification = orNull(d.Message), nil
	if _, isText := strict.Text(n.Message); !isText {
		n.Message, n.Notification = quoted(messageText(n.Message)), n.Message
	}
	n.Level = first(d.Level, levelOf(n.NotificationType))
	return frames(wire.TaskNotification, "", n)
}

// messageText returns a message as a text: that of an object, else its JSON.
func messageText(raw json.RawMessage) string {
	m, _ := strict.Members(raw)
	for _, name := range []string{"message", "text"} {
		if s, ok := strict.Text(m[name]); ok {
			return s
		}
	}
	return strict.Cut(string(raw), wire.MaxText)
}

func taskMessaged(_ event.Event, d event.TaskMessagedData) []wire.Frame {
	return frames(wire.TaskMessageSent, requestOf(d.MessageID), wire.TaskMessageSentContent{
		TaskID: d.TaskID, Status: statusSent, InputID: d.InputID,
	})
}

func taskAsked(_ event.Event, d event.TaskAskedData) []wire.Frame {
	return frames(wire.TaskRequestMessage, "", wire.TaskQuestionContent{
		TaskID: d.TaskID, AgentID: d.AgentID, AgentName: d.AgentName, MessageType: d.MessageType, Message: orNull(d.Message),
		Options: d.Options, Timeout: d.TimeoutMS, InputID: d.InputID,
	})
}

// taskFinished is the end of a task: the result settles the call that created it. The
// end of a child is told of by its parent.
func taskFinished(e event.Event, d event.TaskFinishedData) []wire.Frame {
	if d.ParentID != "" {
		return nil
	}
	end := wire.TaskResultContent{
		TaskID: d.TaskID, AgentID: d.AgentID, AgentName: d.AgentName, Status: d.Status, Result: d.Result, Code: d.Code,
		Details: d.Details, CreatedAt: wire.Stamp(d.CreatedAt), CompletedAt: wire.Stamp(e.Time),
	}
	switch d.Status {
	case event.TaskEndCompleted:
		end.Result = orNull(d.Result)
	case event.TaskEndCancelled:
		end.Error = first(d.Error, "The task was cancelled.")
	default:
		end.Code = first(d.Code, string(fault.TaskFailed))
		end.Error = first(d.Error, fault.Lookup(fault.Code(end.Code)).Message)
	}
	out := frames(wire.TaskResult, d.RequestID, end)
	if d.Status != event.TaskEndFailed {
		return out
	}
	return append(frames(wire.TaskError, "", wire.TaskErrorContent{
		TaskID: d.TaskID, AgentID: d.AgentID, AgentName: d.AgentName, Error: end.Error, Code: end.Code, Details: d.Details,
		Status: d.Status, FailedAt: wire.Stamp(e.Time), Timestamp: wire.Stamp(e.Time),
	}), out...)
}

func childCreated(_ event.Event, d event.ChildCreatedData) []wire.Frame {
	return frames(wire.ChildTaskCreated, "", wire.ChildTaskCreatedContent{
		ParentTaskID: d.TaskID, ChildTaskID: d.ChildID, AgentID: d.AgentID, ChildAgentID: d.ChildAgentID, ChildAgentName: d.ChildAgentName,
		TaskType: d.TaskType, Description: d.Description,
	})
}

func childFinished(_ event.Event, d event.ChildFinishedData) []wire.Frame {
	return frames(wire.ChildTaskStatus, "", wire.ChildTaskStatusContent{
		ParentTaskID: d.TaskID, ChildTaskID: d.ChildID, Status: d.Status, Result: d.Result, Error: why(d.Status, d.Error, d.Code), Code: d.Code,
	})
}

// callStarted tells of calls of services; those of MCP servers are told of when they end.
func callStarted(e event.Event, d event.CallStartedData) []wire.Frame {
	if d.Kind != kindService {
		return nil
	}
	return frames(wire.ServiceStarted, "", wire.ServiceStartedContent{
		ServiceID: d.Server, ServiceName: first(d.ServerName, d.Server), TaskID: d.TaskID, Operation: d.Tool, ServiceTaskID: d.CallID,
		ToolID: d.Tool, ToolName: d.Tool, AgentID: d.AgentID, AgentName: d.AgentName, Timestamp: wire.Stamp(e.Time),
	})
}

func callFinished(e event.Event, d event.CallFinishedData) []wire.Frame {
	if d.Kind != kindService {
		return frames(wire.MCPTaskExecution, "", executed(d))
	}
	return frames(wire.ServiceCompleted, "", wire.ServiceCompletedContent{
		ServiceID: d.Server, ServiceName: first(d.ServerName, d.Server), TaskID: d.TaskID, ServiceTaskID: d.CallID, Status: d.Status,
		Result: d.Result, Error: why(d.Status, d.Error, d.Code), Code: d.Code, Details: d.Details, ExecutionTime: d.DurationMS,
		Timestamp: wire.Stamp(e.Time),
	})
}

// extra reads a text of what a participant said of itself besides what the protocol has.
func extra(raw json.RawMessage, names ...string) string {
	m, _ := strict.Members(raw)
	for _, n := range names {
		if s, ok := strict.Text(m[n]); ok && s != "" {
			return s
		}
	}
	return ""
}
