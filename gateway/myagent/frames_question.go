package myagent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// toolRequested says which tool and with which arguments in the summary, too: it is all
// that the original's console shows of a question.
func toolRequested(c *Codec, _ event.Event, d event.InputRequestedData) wire.Frame {
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
func (c *Codec) clientTool(d event.InputRequestedData) wire.Frame {
	args := asObject(d.Arguments)
	return c.notice(fmt.Sprintf(c.words.clientTool, d.Tool, strict.Cut(string(args), longText)), wire.NoticeMeta{
		Work: wire.Work{Context: run(d.RunID, d.ExecutionID)}, Action: "client_tool", StepID: d.InputID, CallID: d.CallID, ToolName: d.Tool,
	})
}

// agentAsked is a question of an agent of the swarm.
func (c *Codec) agentAsked(of wire.Context, inputID, taskID string, seconds int, message, options json.RawMessage) wire.Frame {
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
			Context: of, Scope: narrate.ScopeTask, TaskID: taskID, Summary: text, Required: true, TimeoutSeconds: seconds,
			Options: []wire.Option{{Value: event.DecisionApprove, Label: c.words.answer}, {Value: event.DecisionReject, Label: c.words.deny}},
		},
	}
}

func turnPaused(c *Codec, _ event.Event, d event.JobSuspendedData) wire.Frame {
	return c.notice(c.words.waitsForPeople, wire.NoticeMeta{
		Work: work(d.RunID, d.ExecutionID, d.Part), Action: "turn_paused", Attempt: d.Attempt,
	})
}
