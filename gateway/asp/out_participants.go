package asp

import (
	"encoding/json"
	"strings"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// agentEvents is the table of the direct messages to agents.
func agentEvents() map[event.Type]writer {
	return map[event.Type]writer{
		event.TaskAssigned:   with(execute),
		event.TaskMessaged:   with(messageResponse),
		event.TaskAskExpired: with(unanswered),
		event.TaskReleased:   with(taken),
		event.TaskFinished:   with(stop),
		event.ChildCreated:   with(childAccepted),
		event.ChildFinished:  with(childResponse),
		event.CallNotified:   with(called),
		event.CallFinished:   with(callReply),
		event.CommandRefused: with(refused),
	}
}

// serviceEvents is the table of the direct messages to services.
func serviceEvents() map[event.Type]writer {
	return map[event.Type]writer{
		event.CallRequested:  with(executeTool),
		event.CommandRefused: with(refused),
	}
}

// execute hands a task to an agent, in both forms of the protocol.
func execute(e event.Event, d event.TaskAssignedData) []wire.Frame {
	m := wire.ExecuteMetadata{
		ClientID: d.ClientID, ParentTaskID: d.ParentID, Attempt: d.Attempt, RequestingAgent: d.Caller,
		Timestamp: wire.Stamp(e.Time), Deadline: wire.Stamp(d.Deadline),
	}
	if !d.Deadline.IsZero() {
		m.Timeout = max(d.Deadline.Sub(e.Time).Milliseconds(), 1)
	}
	data := orNull(d.Data)
	if string(d.Caller) == "null" {
		m.RequestingAgent = nil
	}
	if caller, ok := strict.Members(m.RequestingAgent); ok {
		m.RequestingAgentID, _ = strict.Text(caller["id"])
		data = naming(data, m.RequestingAgent)
	}
	return []wire.Frame{{ID: d.TaskID, Type: wire.TaskExecute, Content: wire.TaskExecuteContent{
		TaskID: d.TaskID, Type: d.TaskType, Data: data, TaskType: d.TaskType, Input: orNull(d.Data), Metadata: m,
	}}}
}

// naming puts the agent that asked for a child task where the SDK's handlers look for
// it: into the metadata of the data, if that is an object.
func naming(data, caller json.RawMessage) json.RawMessage {
	m, ok := strict.Members(data)
	if !ok {
		return data
	}
	meta, ok := strict.Members(m["metadata"])
	if !ok && truthy(m["metadata"]) {
		return data // It has another meaning here.
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	meta["requestingAgent"] = caller
	m["metadata"] = strict.Encoded(meta)
	return strict.Encoded(m)
}

// messageResponse hands on what the client says. The SDK waits for the answer to its
// question as for a reply.
func messageResponse(_ event.Event, d event.TaskMessagedData) []wire.Frame {
	return frames(wire.TaskMessageResponse, d.InputID, wire.TaskMessageResponseContent{
		TaskID: d.TaskID, MessageType: first(d.MessageType, fromClient), Message: orNull(d.Message), ClientID: first(d.From, d.ClientID), InputID: d.InputID,
	})
}

// unanswered ends the agent's wait for an answer. The task continues.
func unanswered(_ event.Event, d event.TaskAskExpiredData) []wire.Frame {
	if strings.HasPrefix(d.InputID, unasked) {
		return nil
	}
	c := trouble(fault.Newf(fault.InputExpired, "The client did not answer in time. The task continues."))
	c.TaskID = d.TaskID
	return frames(wire.Error, d.InputID, c)
}

func taken(_ event.Event, d event.TaskReleasedData) []wire.Frame {
	return frames(wire.TaskCancel, "", wire.CancelTaskContent{TaskID: d.TaskID, Reason: d.Reason})
}

// stop tells an agent that its task has ended without it. Of the end that it reported
// itself it need not be told.
func stop(_ event.Event, d event.TaskFinishedData) []wire.Frame {
	if d.Status == event.TaskEndCompleted || d.Status == event.TaskEndFailed && d.Code != string(fault.TaskTimeout) {
		return nil
	}
	return frames(wire.TaskCancel, "", wire.CancelTaskContent{TaskID: d.TaskID, Reason: first(d.Error, d.Code, d.Status)})
}

func childAccepted(_ event.Event, d event.ChildCreatedData) []wire.Frame {
	return frames(wire.ChildAccepted, "", wire.ChildAcceptedContent{
		ChildTaskID: d.ChildID, ParentTaskID: d.TaskID, TargetAgent: first(d.ChildAgentName, d.ChildAgentID), Status: statusAccepted,
		Message: "Child task accepted", InReplyTo: d.ChildRequestID,
	})
}

func childResponse(_ event.Event, d event.ChildFinishedData) []wire.Frame {
	return frames(wire.ChildResponse, "", wire.ChildResponseContent{
		ChildTaskID: d.ChildID, ParentTaskID: d.TaskID, Status: d.Status, Result: d.Result, Error: why(d.Status, d.Error, d.Code), Code: d.Code,
	})
}

// callReply tells an agent the outcome of its call.
func callReply(_ event.Event, d event.CallFinishedData) []wire.Frame {
	if d.Kind != kindService {
		return frames(wire.ToolExecuteReply, d.CallRequest, executed(d))
	}
	return frames(wire.ServiceExecuteReply, d.CallRequest, wire.ServiceExecuteReplyContent{
		ServiceTaskID: d.CallID, ServiceID: d.Server, ServiceName: d.ServerName, ToolID: d.Tool, TaskID: d.TaskID, Status: outcome(d.Status),
		Result: d.Result, Error: why(d.Status, d.Error, d.Code), Code: d.Code, Details: d.Details, ExecutionTime: d.DurationMS,
	})
}

// outcome is the status of a call in the words that agents know.
func outcome(status string) string {
	switch status {
	case statusSuccess:
		return statusCompleted
	case "error":
		return statusFailed
	}
	return status
}

// executeTool hands a call to a service.
func executeTool(e event.Event, d event.CallRequestedData) []wire.Frame {
	return []wire.Frame{{ID: d.CallID, Type: wire.ServiceExecute, Content: wire.ServiceExecuteContent{
		ToolID: d.Tool, FunctionName: d.Tool, Params: orNull(d.Arguments),
		Metadata: wire.CallMetadata{
			AgentID: d.AgentID, ClientID: d.ClientID, TaskID: d.TaskID, Timestamp: wire.Stamp(e.Time),
			Priority: first(d.Priority, "normal"), Deadline: wire.Stamp(d.Deadline),
		},
	}}}
}
