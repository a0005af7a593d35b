package myagent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// teamFrames returns the frames of events that only teams and their members have. An event
// without a word in the protocol is a notice whose action is the canonical type.
func teamFrames() frames {
	return frames{
		event.MemberCreated:     with(agentCreated),
		event.MemberClosed:      with(agentClosed),
		event.JobSuspended:      with(turnPaused),
		event.TodosUpdated:      with(todosUpdated),
		event.ArtifactPersisted: with(artifactPersisted),
		event.ArtifactUpdated:   with(artifactUpdated),

		event.TeamCreated:        with(teamCreated),
		event.TeamMemberStarted:  with(teamMemberStarted),
		event.TeamStatus:         with(teamStatus),
		event.TeamMessage:        with(teamMessage),
		event.TeamMessageDropped: with(teamMessageDropped),
		event.TeamStopped:        with(teamStopped),
		event.TeamPauseBegun:     with(teamPaused),
		event.TeamResumed:        with(teamResumed),
		event.TeamClosing:        with(teamClosing),
		event.TeamClosed:         with(teamClosed),
		event.BoardCreated:       with(boardCreated),
		event.BoardUpdated:       with(boardUpdated),

		event.TeamMemberEvent:  neutral, // unreadable: event.Unwrap has replaced the others
		event.TeamSubTeamEvent: neutral,
	}
}

// toolRequested is a question as that about a plan is: clients answer it in the same way.
// toolRequested says which tool and with which arguments in the summary, too: it is all
// that the original's console shows of a question.
func toolRequested(c *codec, _ event.Event, d event.InputRequestedData) wire.Frame {
	args := asObject(d.Arguments)
	summary := fmt.Sprintf(c.words.toolWith, d.Tool, strict.Cut(string(args), longText))
	text := fmt.Sprintf(c.words.mayCall, d.Tool)
	if d.Description != "" {
		text += "\n" + d.Description
	}
	options := []wire.Option{{Value: event.DecisionApprove, Label: c.words.allow}, {Value: event.DecisionReject, Label: c.words.deny}}
	if len(d.Parameters) > 0 {
		options = slices.Insert(options, 1, wire.Option{Value: event.DecisionModify, Label: c.words.modify})
	}
	return wire.Frame{
		Event: wire.AgentUserConfirm, StepID: &d.InputID, Content: text, ShowContent: text,
		Metadata: wire.ConfirmMeta{
			Context: run(d.RunID, d.ExecutionID), Scope: d.Scope, Summary: summary,
			TimeoutSeconds: d.TimeoutSeconds, Required: true, ToolName: d.Tool, ToolArgs: args, ToolSchema: d.Parameters, CallID: d.CallID,
			Options: options,
		},
	}
}

// clientTool does not ask: only the client that offers the tool has the result.
func (c *codec) clientTool(d event.InputRequestedData) wire.Frame {
	args := asObject(d.Arguments)
	return c.notice(fmt.Sprintf(c.words.clientTool, d.Tool, strict.Cut(string(args), longText)), wire.NoticeMeta{
		Work: wire.Work{Context: run(d.RunID, d.ExecutionID)}, Action: "client_tool", StepID: d.InputID, CallID: d.CallID, ToolName: d.Tool,
	})
}

func agentCreated(c *codec, _ event.Event, d event.MemberCreatedData) wire.Frame {
	return c.notice(fmt.Sprintf(c.words.agentMade, d.Name), wire.NoticeMeta{Action: "agent_created", Member: d.Name, Model: d.Model})
}

func agentClosed(c *codec, _ event.Event, d event.MemberClosedData) wire.Frame {
	return c.notice(c.words.agentClosed, wire.NoticeMeta{Action: "agent_closed", Reason: d.Reason})
}

func turnPaused(c *codec, _ event.Event, d event.JobSuspendedData) wire.Frame {
	return c.notice(c.words.waitsForPeople, wire.NoticeMeta{
		Work: work(d.RunID, d.ExecutionID, d.Part), Action: "turn_paused", Attempt: d.Attempt,
	})
}

func todosUpdated(c *codec, _ event.Event, d event.TodosUpdatedData) wire.Frame {
	var b strings.Builder
	b.WriteString(c.words.todos)
	for _, t := range d.Todos {
		fmt.Fprintf(&b, "\n[%s] %s", t.Status, t.Description)
	}
	return c.notice(b.String(), wire.NoticeMeta{
		Work: wire.Work{Context: wire.Context{RunID: d.RunID}}, Action: "todos_updated", CallID: d.CallID,
	})
}

func artifactPersisted(c *codec, _ event.Event, d event.ArtifactPersistedData) wire.Frame {
	return c.artifact(c.words.fileMade, "artifact_persisted", d.Artifact)
}

func artifactUpdated(c *codec, _ event.Event, d event.ArtifactUpdatedData) wire.Frame {
	return c.artifact(c.words.fileChanged, "artifact_updated", d.Artifact)
}

func (c *codec) artifact(format, action string, a event.Artifact) wire.Frame {
	return c.notice(fmt.Sprintf(format, a.Path), wire.NoticeMeta{
		Work: wire.Work{Context: wire.Context{RunID: a.RunID}}, Action: action, CallID: a.CallID, Path: a.Path,
	})
}

func teamCreated(c *codec, _ event.Event, d event.TeamCreatedData) wire.Frame {
	return c.notice(fmt.Sprintf(c.words.teamMade, d.Definition.Name), wire.NoticeMeta{
		Action: "team_created", Member: d.Definition.Name, By: d.Principal,
	})
}

func teamMemberStarted(c *codec, _ event.Event, d event.TeamMemberStartedData) wire.Frame {
	return c.notice(fmt.Sprintf(c.words.memberStarted, d.Name), wire.NoticeMeta{Action: "team_member_started", Member: d.Name})
}

// teamStatus is an error where a member has failed.
func teamStatus(c *codec, _ event.Event, d event.TeamStatusData) wire.Frame {
	if d.NewStatus == event.TeamFailed {
		return c.agentError(first(d.ErrorMessage, c.words.teamFailed), wire.ErrorMeta{ErrorType: string(fault.Internal), Operation: "team"})
	}
	return c.notice(fmt.Sprintf(c.words.teamStatus, d.NewStatus), wire.NoticeMeta{Action: "team_status", Status: d.NewStatus})
}

func teamMessage(c *codec, _ event.Event, d event.TeamMessageData) wire.Frame {
	return c.notice(fmt.Sprintf(c.words.teamMessage, d.Member, d.Content), wire.NoticeMeta{
		Work: wire.Work{TaskID: d.TaskID}, Action: "team_message", MessageID: d.MessageID, Member: d.Member, CallID: d.CallID,
		By: first(sender(d.Sender), d.Principal),
	})
}

func teamMessageDropped(c *codec, _ event.Event, d event.TeamMessageDroppedData) wire.Frame {
	return c.agentError(fmt.Sprintf(c.words.dropped, d.Member, d.Reason), wire.ErrorMeta{
		ErrorType: narrate.DropCode(d.Reason), Operation: "message", MessageID: d.MessageID,
	})
}

func teamStopped(c *codec, _ event.Event, d event.TeamStoppedData) wire.Frame {
	whom := strings.Trim(d.Member+"/"+d.Route, "/")
	return c.notice(fmt.Sprintf(c.words.stopped, first(whom, c.words.allMembers)), wire.NoticeMeta{
		Action: "team_stopped", Member: whom, By: d.By, Reason: d.Reason,
	})
}

func teamPaused(c *codec, _ event.Event, d event.TeamPausedData) wire.Frame {
	return c.notice(c.words.paused, wire.NoticeMeta{Action: "team_paused", By: d.By})
}

func teamResumed(c *codec, _ event.Event, d event.TeamResumedData) wire.Frame {
	return c.notice(c.words.resumed, wire.NoticeMeta{Action: "team_resumed", By: d.By})
}

func teamClosing(c *codec, _ event.Event, d event.TeamClosingData) wire.Frame {
	return c.notice(c.words.closing, wire.NoticeMeta{Action: "team_closing", By: d.By, Reason: d.Reason})
}

func teamClosed(c *codec, _ event.Event, d event.TeamClosedData) wire.Frame {
	return c.notice(c.words.closed, wire.NoticeMeta{Action: "team_closed", Reason: d.Reason})
}

// boardCreated shows the tasks as those of a plan are.
func boardCreated(c *codec, _ event.Event, d event.BoardCreatedData) wire.Frame {
	list := make([]wire.Task, 0, len(d.Tasks))
	for _, t := range d.Tasks {
		list = append(list, wire.Task{
			ID: t.TaskID, Title: t.TaskName, Description: t.Description, Dependencies: t.Dependencies,
			Extra: map[string]any{"assignee_name": t.AssigneeName, "status": t.Status},
		})
	}
	return c.notice(fmt.Sprintf(c.words.board, len(d.Tasks)), wire.NoticeMeta{Action: "board_created", By: d.By, CallID: d.CallID, Tasks: list})
}

func boardUpdated(c *codec, _ event.Event, d event.BoardUpdatedData) wire.Frame {
	return c.notice(fmt.Sprintf(c.words.boardTask, d.TaskID, d.NewStatus), wire.NoticeMeta{
		Work: wire.Work{TaskID: d.TaskID}, Action: "board_updated", Status: d.NewStatus, Member: d.AgentName, CallID: d.CallID,
	})
}
