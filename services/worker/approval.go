package worker

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/schema"
)

// ask asks people whether the calls may run, and the client to carry its own out, all at once. A tool that is not on offer
// cannot run, so people are not asked about it.
func (j *job) ask(ctx context.Context, calls []event.ToolCall, offered map[string]tools.Tool) error {
	var questions []event.Data
	for _, c := range calls {
		tool, ok := offered[c.Name]
		if !ok {
			if err := j.refuse(ctx, c, fault.New(fault.ToolNotFound)); err != nil {
				return err
			}
			continue
		}
		scope, definition, parameters := event.ScopeTool, tool.Definition(), editable(tool)
		if tool.Client {
			scope, definition, parameters = event.ScopeClientTool, "", nil
		}
		questions = append(questions, event.InputRequestedData{
			InputID: conversation.InputOf(c.ID), RunID: j.runID, ExecutionID: j.begun.ExecutionID, Scope: scope,
			Attempt: j.attempt, CallID: c.ID, Tool: c.Name, Description: tool.Description, Arguments: c.Arguments, Digest: digest(c), Definition: definition, Parameters: parameters,
		})
	}
	if len(questions) == 0 {
		return nil
	}
	return j.append(ctx, questions...)
}

// maxParameters bounds the schema in a question: those of real tools have 1 to 4 KB.
const maxParameters = 16 << 10

// editable returns the schema of the arguments that people may change; nil: they approve or reject the call as it is.
func editable(tool tools.Tool) json.RawMessage {
	if len(tool.InputSchema) == 0 || len(tool.InputSchema) > maxParameters {
		return nil
	}
	if _, err := schema.Compile(tool.InputSchema); err != nil {
		return nil
	}
	return tool.InputSchema
}

// forbidden returns why a call may not run, nil if it may: where people are asked first,
// they have to have allowed exactly this call of the tool as it is on offer.
func (j *job) forbidden(c event.ToolCall, offered tools.Tool) *fault.Fault {
	if !j.state.Asks(c.ID) {
		return nil
	}
	asked, _ := j.state.Approval(c.ID)
	switch {
	case !asked.Allowed():
		return fault.Newf(fault.ToolDenied, "This call was not allowed.")
	case asked.Digest != digest(c):
		return fault.Newf(fault.ToolDenied, "The approval is for another call than this one.")
	}
	log := j.log.Ref
	if err := signature.Approval(j.s.deps.Signatures, asked.Proof, log.Tenant, log.Kind, log.Entity, c.ID, digest(c)); err != nil {
		j.s.deps.Logger.Error().Err(err).Stringer("log", log).Str("call_id", c.ID).Str("tool", c.Name).Msg("tool call rejected: approval not proven")
		return fault.Newf(fault.ToolDenied, "This call has no approval that a person has signed.").Wrap(err)
	}
	if offered.Name == "" {
		return nil // the tool service says that it is not there
	}
	if f, ok := errors.AsType[*fault.Fault](j.callOf(c).Changed(offered)); ok {
		return f
	}
	return nil
}

// refuse gives a call its outcome without running it.
func (j *job) refuse(ctx context.Context, c event.ToolCall, why *fault.Fault) error {
	return j.append(ctx, append(j.intent(c, tools.Tool{}), event.ToolFailedData{
		CallID: c.ID, RunID: j.runID, ExecutionID: j.begun.ExecutionID, Attempt: j.attempt, Tool: c.Name,
		Code: string(why.Code), Message: why.Public(), Part: j.begun.Part,
	})...)
}

// errAnswered says that a job goes on: people have answered before it was suspended.
var errAnswered = errors.New("people have answered")

// pause suspends the job if all remaining calls wait for people. It returns errPaused once the log
// records the suspension, and nil if people have answered meanwhile: then the attempt continues.
func (j *job) pause(ctx context.Context) error {
	if err := j.tellOfDeadline(ctx); err != nil {
		return err
	}
	j.what = event.JobSuspended
	err := j.log.Put(ctx, []string{j.claim + ".paused"}, func(s *conversation.State, left []string) ([]event.Event, error) {
		if err := j.held(); err != nil {
			return nil, err
		}
		st := s.Next(j.id)
		if st.Kind != conversation.StepWait {
			return nil, errAnswered
		}
		return j.events(left, event.JobSuspendedData{
			RunID: j.runID, ExecutionID: j.begun.ExecutionID, Attempt: j.attempt, Inputs: st.Inputs, Part: j.begun.Part,
		})
	})
	switch {
	case errors.Is(err, errAnswered):
		return nil
	case err != nil:
		return err
	}
	return errPaused
}
