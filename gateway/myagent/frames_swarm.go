package myagent

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// swarmFrames returns the frames of the log of a task of the swarm. It is shown as a
// run of its own: its id is the run's.
func swarmFrames() frames {
	return frames{
		event.TaskCreated:    with(taskCreated),
		event.TaskQueued:     with(taskQueued),
		event.TaskAssigned:   with(taskAssigned),
		event.TaskReported:   with(taskReported),
		event.TaskNotified:   with(taskNotified),
		event.TaskMessaged:   with(taskMessaged),
		event.TaskReleased:   with(taskReleased),
		event.TaskRefused:    with(taskRefused),
		event.TaskDeleted:    with(taskDeleted),
		event.TaskAsked:      with(taskAsked),
		event.TaskAskExpired: with(taskAskExpired),
		event.TaskFinished:   with(taskFinished),
		event.ChildCreated:   with(childCreated),
		event.ChildFinished:  with(childFinished),
		event.CallStarted:    with(callStarted),
		event.CallNotified:   with(callNotified),
		event.CallFinished:   with(callFinished),
	}
}

// scopeTask is the scope of the question of an agent of the swarm.
const scopeTask = "task"

// msPerSecond turns the unit of tasks into that of frames.
const msPerSecond = 1000

// taskRun names the task as a run.
func taskRun(h event.TaskHead) wire.Context { return wire.Context{RunID: h.TaskID} }

// taskWork names the task as a piece of work.
func taskWork(h event.TaskHead) wire.Work { return wire.Work{Context: taskRun(h), TaskID: h.TaskID} }

func taskCreated(_ *codec, _ event.Event, d event.TaskCreatedData) wire.Frame {
	return wire.Frame{
		Event: wire.UserMessage, Content: first(narrate.Plain(d.Data), d.TaskType),
		Metadata: wire.EchoMeta{Context: taskRun(d.TaskHead), MessageID: d.TaskID, By: d.Principal},
	}
}

func taskMessaged(_ *codec, _ event.Event, d event.TaskMessagedData) wire.Frame {
	return wire.Frame{
		Event: wire.UserMessage, Content: narrate.Plain(d.Message),
		Metadata: wire.EchoMeta{Context: taskRun(d.TaskHead), MessageID: d.MessageID, ClientID: d.From},
	}
}

func taskQueued(c *codec, _ event.Event, d event.TaskQueuedData) wire.Frame {
	return c.notice(c.words.taskQueued, wire.NoticeMeta{Work: taskWork(d.TaskHead), Action: "task_queued", Status: "queued", Reason: d.Reason})
}

func taskAssigned(c *codec, _ event.Event, d event.TaskAssignedData) wire.Frame {
	return c.thinking(begun(event.StageSolving), wire.ThinkingMeta{Work: taskWork(d.TaskHead), Attempt: d.Attempt})
}

func taskReported(c *codec, _ event.Event, d event.TaskReportedData) wire.Frame {
	return c.notice(fmt.Sprintf(c.words.taskReported, d.Status), wire.NoticeMeta{
		Work: taskWork(d.TaskHead), Action: "task_reported", Status: d.Status, Member: d.AgentName, Attempt: d.Attempt,
	})
}

func taskNotified(c *codec, _ event.Event, d event.TaskNotifiedData) wire.Frame {
	m := wire.NoticeMeta{Work: taskWork(d.TaskHead), Action: "task_notified", Status: d.NotificationType, Member: d.AgentName, Attempt: d.Attempt}
	if kind := first(d.Level, d.NotificationType); kind == "warning" || kind == "error" {
		m.Type, m.Severity = "warning", mildFault
	}
	return c.notice(first(narrate.Plain(d.Message), c.words.other), m)
}

func taskReleased(c *codec, _ event.Event, d event.TaskReleasedData) wire.Frame {
	return c.notice(fmt.Sprintf(c.words.taskReleased, first(d.AgentName, d.AgentID)), wire.NoticeMeta{
		Work: taskWork(d.TaskHead), Type: "warning", Severity: mildFault, Action: "task_released", Reason: d.Reason, Member: d.AgentName, Attempt: d.Attempt,
	})
}

func taskRefused(c *codec, _ event.Event, d event.TaskRefusedData) wire.Frame {
	return c.notice(fmt.Sprintf(c.words.taskRefused, d.By), wire.NoticeMeta{
		Work: taskWork(d.TaskHead), Action: "task_refused", Code: d.Code, Refused: d.What, Worker: d.By,
	})
}

func taskDeleted(c *codec, _ event.Event, d event.TaskDeletedData) wire.Frame {
	return c.notice(c.words.taskDeleted, wire.NoticeMeta{Type: "warning", Severity: mildFault, Action: "task_deleted", Reason: d.Reason})
}

// taskAsked is a question as that about a plan is: clients answer it in the same way.
func taskAsked(c *codec, _ event.Event, d event.TaskAskedData) wire.Frame {
	return c.agentAsked(taskRun(d.TaskHead), d.InputID, d.TaskID, int((d.TimeoutMS+msPerSecond-1)/msPerSecond), d.Message, d.Options)
}

// agentAsked is a question of an agent of the swarm.
func (c *codec) agentAsked(of wire.Context, inputID, taskID string, seconds int, message, options json.RawMessage) wire.Frame {
	text := first(narrate.Plain(message), c.words.agentAsks)
	var choices []json.RawMessage
	if json.Unmarshal(options, &choices) == nil && len(choices) > 0 {
		said := make([]string, 0, len(choices))
		for _, o := range choices {
			said = append(said, narrate.Plain(o))
		}
		text += fmt.Sprintf(c.words.options, strings.Join(said, ", "))
	}
	return wire.Frame{
		Event: wire.AgentUserConfirm, StepID: &inputID, Content: text, ShowContent: text,
		Metadata: wire.ConfirmMeta{
			Context: of, Scope: scopeTask, TaskID: taskID, Summary: text, Required: true, TimeoutSeconds: seconds,
			Options: []wire.Option{{Value: event.DecisionApprove, Label: c.words.answer}, {Value: event.DecisionReject, Label: c.words.deny}},
		},
	}
}

func taskAskExpired(c *codec, _ event.Event, d event.TaskAskExpiredData) wire.Frame {
	v, kind, _ := judged(string(fault.InputExpired))
	return wire.Frame{Event: wire.ErrorTimeout, Content: c.words.noAnswer, ShowContent: c.words.noAnswer, Metadata: wire.TimeoutErrorMeta{
		Work: taskWork(d.TaskHead), ErrorCode: v.code, ErrorType: kind, Strategy: askUser, Attempt: d.Attempt, StepID: d.InputID,
	}}
}

// taskFinished is the answer of an agent of the swarm, or the reason for its absence.
func taskFinished(c *codec, _ event.Event, d event.TaskFinishedData) wire.Frame {
	switch d.Status {
	case event.TaskEndCompleted:
		return finalAnswer(narrate.Plain(d.Result), wire.FinalAnswerMeta{Context: taskRun(d.TaskHead), Status: "success"}, nil)
	case event.TaskEndCancelled:
		return wire.Frame{
			Event: wire.AgentInterrupted, Content: c.words.taskCancelledBy, ShowContent: c.words.interrupted,
			Metadata: wire.InterruptedMeta{Context: taskRun(d.TaskHead), Reason: first(d.Error, byUser)},
		}
	}
	return c.agentError(d.Error, wire.ErrorMeta{Context: taskRun(d.TaskHead), ErrorType: first(d.Code, string(fault.TaskFailed)), Operation: "run"})
}

func childCreated(c *codec, _ event.Event, d event.ChildCreatedData) wire.Frame {
	whom := first(d.ChildAgentName, d.ChildAgentID, d.TaskType)
	return c.notice(fmt.Sprintf(c.words.childMade, whom), wire.NoticeMeta{
		Work: wire.Work{Context: taskRun(d.TaskHead), TaskID: d.ChildID}, Action: "child_created", Member: whom,
	})
}

func childFinished(c *codec, _ event.Event, d event.ChildFinishedData) wire.Frame {
	if d.Status == event.TaskEndFailed {
		code := first(d.Code, string(fault.TaskFailed))
		return c.agentError(fmt.Sprintf(c.words.childFailed, d.ChildID, said(code, d.Error)), wire.ErrorMeta{
			Context: taskRun(d.TaskHead), ErrorType: code, Operation: "child_task",
		})
	}
	return c.notice(fmt.Sprintf(c.words.childEnd, d.Status), wire.NoticeMeta{
		Work: wire.Work{Context: taskRun(d.TaskHead), TaskID: d.ChildID}, Action: "child_finished", Status: d.Status,
	})
}

func callStarted(c *codec, _ event.Event, d event.CallStartedData) wire.Frame {
	return wire.Frame{
		Event: wire.AgentToolCall, Content: "Calling " + d.Tool, ShowContent: c.words.toolCall,
		Metadata: wire.ToolCallMeta{
			Work: taskWork(d.TaskHead), ToolName: d.Tool, ToolArgs: asObject(d.Arguments), CallID: d.CallID, Attempt: d.Attempt,
		},
	}
}

func callNotified(c *codec, _ event.Event, d event.CallNotifiedData) wire.Frame {
	return c.notice(fmt.Sprintf(c.words.callNotified, first(d.Message, d.NotificationType)), wire.NoticeMeta{
		Work: taskWork(d.TaskHead), Action: "call_notified", CallID: d.CallID, Status: d.NotificationType, Member: first(d.ServerName, d.Server),
	})
}

func callFinished(c *codec, _ event.Event, d event.CallFinishedData) wire.Frame {
	m := wire.ToolResultMeta{Work: taskWork(d.TaskHead), ToolName: d.Tool, CallID: d.CallID, ExecutionMS: &d.DurationMS, Attempt: d.Attempt}
	if d.Status == "success" {
		output := narrate.Plain(d.Result)
		m.Result = wire.ToolResult{Status: d.Status, Output: output, Bytes: len(d.Result)}
		return c.toolResult(first(strict.Cut(output, longText), "The tool returned nothing"), m)
	}
	v, kind, _ := judged(first(d.Code, string(fault.ToolFailed)))
	text := said(kind, d.Error)
	m.Result = wire.ToolResult{Status: "failed", Error: text, ErrorCode: v.code, ErrorType: kind}
	if d.Status == "unknown" {
		m.Result.Status = d.Status
		return c.toolResult("Outcome unknown: "+strict.Cut(text, longText), m)
	}
	return c.toolResult("Failed: "+strict.Cut(text, longText), m)
}
