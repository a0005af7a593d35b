package myagent

import (
	"fmt"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// percent is the whole of a progress.
const percent = 100

func planStarted(c *Codec, _ event.Event, d event.PlanStartedData) wire.Frame {
	return wire.Frame{
		Event: wire.PlanStart, Content: wire.PlanStartContent{Question: d.Question, Context: optionalObject(d.Context)},
		Metadata:    wire.PlanStartMeta{Context: run(d.RunID, d.ExecutionID), PlanID: d.PlanID, Model: d.Model, Attempt: d.Number},
		ShowContent: fmt.Sprintf(c.words.planning, strict.Cut(d.Question, shortText)),
	}
}

func planCompleted(c *Codec, _ event.Event, d event.PlanCompletedData) wire.Frame {
	m := wire.PlanCompletedMeta{
		Context: run(d.RunID, d.ExecutionID), PlanID: d.PlanID, TaskCount: len(d.Steps),
		Summary: d.Summary, Reasoning: d.Reasoning, Spent: spent(d.Usage), PlanningMS: d.DurationMS,
	}
	for _, t := range d.Steps {
		m.EstimatedTokens += t.EstimatedTokens
		m.EstimatedSeconds += t.EstimatedSeconds
	}
	return wire.Frame{
		Event: wire.PlanCompleted, Content: wire.Tasks{Tasks: tasks(d.Steps)}, Metadata: m,
		ShowContent: c.counted(c.words.planReady, len(d.Steps), d.Summary),
	}
}

// counted returns the number of tasks and, if known, their subject.
func (c *Codec) counted(format string, n int, summary string) string {
	s := fmt.Sprintf(format, n)
	if summary != "" {
		s += fmt.Sprintf(c.words.summary, strict.Cut(summary, shortText))
	}
	return s
}

func planInvalid(_ *Codec, _ event.Event, d event.PlanInvalidData) wire.Frame {
	v, kind, _ := judged(first(d.Code, string(fault.PlanInvalid)))
	text := said(kind, d.Message)
	return wire.Frame{Event: wire.PlanCoercionError, Content: text, Metadata: wire.CoercionMeta{
		Context: run(d.RunID, d.ExecutionID), PlanID: d.PlanID, ErrorCode: v.code, ErrorType: kind, RawOutput: d.Raw,
		ErrorMessage: text, Recovery: d.Recovery, ConfirmStepID: d.InputID, By: d.By,
	}}
}

func planCancelled(c *Codec, _ event.Event, d event.PlanCancelledData) wire.Frame {
	m := wire.PlanCancelledMeta{
		Context: run(d.RunID, d.ExecutionID), PlanID: d.PlanID, Reason: d.Reason, By: d.By, Feedback: d.Feedback, AfterMS: d.DurationMS,
	}
	if len(d.Steps) > 0 {
		m.PartialPlan = &wire.Tasks{Tasks: tasks(d.Steps)}
	}
	text := "Planning cancelled"
	switch d.Reason {
	case byUser:
		text = "Planning cancelled by user"
	case "timeout":
		text = "Planning cancelled: the plan was not confirmed in time"
	}
	return wire.Frame{Event: wire.PlanCancelled, Content: text, Metadata: m, ShowContent: c.words.planCancelled}
}

func inputRequested(c *Codec, e event.Event, d event.InputRequestedData) wire.Frame {
	if d.Scope == event.ScopeTool {
		return toolRequested(c, e, d)
	}
	if d.Scope == event.ScopeClientTool {
		return c.clientTool(d)
	}
	if d.Scope == event.ScopeAgent {
		return c.agentAsked(run(d.RunID, d.ExecutionID), d.InputID, d.StepID, d.TimeoutSeconds, d.Message, d.Options)
	}
	if d.Scope == event.ScopeBudget {
		return c.asked(narrate.Narration{
			Text: d.Summary, Run: d.RunID, Execution: d.ExecutionID,
			Ask: narrate.Ask{ID: d.InputID, Scope: d.Scope, TimeoutSeconds: d.TimeoutSeconds},
		})
	}
	text, show := c.words.confirmOther, c.words.confirmOther
	if d.Scope == event.ModePlan {
		text = c.counted(c.words.confirmPlan, len(d.Steps), "")
		show = c.counted(c.words.confirmPlan, len(d.Steps), d.Summary)
	}
	return wire.Frame{
		Event: wire.AgentUserConfirm, StepID: &d.InputID, Content: text, ShowContent: show,
		Metadata: wire.ConfirmMeta{
			Context: run(d.RunID, d.ExecutionID), Scope: d.Scope, PlanID: d.PlanID, Tasks: tasks(d.Steps), TaskCount: len(d.Steps),
			Summary: d.Summary, TimeoutSeconds: d.TimeoutSeconds, Required: true,
			Options: []wire.Option{
				{Value: event.DecisionApprove, Label: c.words.approve},
				{Value: event.DecisionModify, Label: c.words.modify},
				{Value: event.DecisionReject, Label: c.words.reject},
			},
		},
	}
}

func inputAnswered(c *Codec, _ event.Event, d event.InputAnsweredData) wire.Frame {
	m := wire.NoticeMeta{
		Work: wire.Work{Context: run(d.RunID, d.ExecutionID)}, Action: wire.ActionUserConfirm, StepID: d.InputID, Decision: d.Decision,
		By: d.By, ClientID: d.ClientID, Feedback: d.Feedback, ResponseMS: &d.ElapsedMS,
	}
	if len(d.Steps) > 0 {
		m.Tasks = tasks(d.Steps)
	}
	text := c.words.answered
	if d.CallID != "" {
		text, m.ToolName, m.CallID = c.words.callAnswered, d.Tool, d.CallID
		if len(d.Arguments) > 0 {
			m.ToolArgs = asObject(d.Arguments)
		}
	}
	return c.notice(fmt.Sprintf(text, d.Decision), m)
}

func inputExpired(c *Codec, _ event.Event, d event.InputExpiredData) wire.Frame {
	if d.Withdrawn {
		return c.notice(narrate.Withdrawn(d), wire.NoticeMeta{Work: wire.Work{Context: run(d.RunID, d.ExecutionID)}, Action: wire.ActionUserConfirm, StepID: d.InputID})
	}
	v, kind, _ := judged(string(fault.InputExpired))
	return c.timeout(fmt.Sprintf("The question was not answered within %d seconds", d.TimeoutSeconds), wire.TimeoutErrorMeta{
		Work:      wire.Work{Context: run(d.RunID, d.ExecutionID), Stage: "confirmation"},
		ErrorCode: v.code, ErrorType: kind, TimeoutSeconds: d.TimeoutSeconds, ElapsedSeconds: seconds(d.ElapsedMS), Strategy: askUser, StepID: d.InputID,
	})
}

// taskStarted tells who solves the task: the agents of a capability, or our own.
func taskStarted(c *Codec, _ event.Event, d event.StepStartedData) wire.Frame {
	return wire.Frame{
		Event: wire.SolverStart, StepID: solveStep(d.Step.ID), Content: wire.SolverStartContent{Task: task(d.Step)},
		Metadata: wire.SolverStartMeta{
			Context: run(d.RunID, d.ExecutionID), TaskID: d.Step.ID, SolverID: first(d.Step.Capability, "solver_default"),
			Attempt: d.Attempt, DependenciesDone: true,
		},
		ShowContent: fmt.Sprintf(c.words.solving, first(d.Step.Title, d.Step.ID)),
	}
}

func taskCompleted(c *Codec, _ event.Event, d event.StepCompletedData) wire.Frame {
	uses := make([]wire.ToolUse, 0, len(d.Tools))
	for _, t := range d.Tools {
		uses = append(uses, wire.ToolUse{Name: t.Name, Calls: t.Calls})
	}
	return wire.Frame{
		Event: wire.SolverCompleted, StepID: solveStep(d.StepID),
		Content: wire.SolverCompletedContent{
			Task: wire.TaskName{ID: d.StepID, Title: d.Title}, Result: wire.SolverResult{Status: "success", Output: d.Output},
		},
		Metadata: wire.SolverCompletedMeta{
			Context: run(d.RunID, d.ExecutionID), TaskID: d.StepID, MessageID: d.MessageID, Attempt: d.Attempt,
			ExecutionMS: d.DurationMS, Spent: spent(d.Usage), ToolCalls: uses,
		},
		ShowContent: fmt.Sprintf(c.words.solved, first(d.Title, d.StepID)),
	}
}

// taskFailed is never the end: a client may restart the task.
func taskFailed(c *Codec, _ event.Event, d event.StepFailedData) wire.Frame {
	v, kind, _ := judged(d.Code)
	name := first(d.Title, d.StepID)
	return wire.Frame{
		Event: wire.SolverStepFailed, Content: wire.StepFailedContent{ErrorMessage: said(d.Code, d.Message), StepName: name},
		Metadata: wire.StepFailedMeta{
			Context: run(d.RunID, d.ExecutionID), TaskID: d.StepID, ErrorCode: v.code, ErrorType: kind, Recovery: true,
			Attempt: d.Attempt, ExecutionMS: d.DurationMS,
		},
		ShowContent: fmt.Sprintf(c.words.taskFailed, name),
	}
}

func taskCancelled(c *Codec, _ event.Event, d event.StepCancelledData) wire.Frame {
	m := wire.SolverCancelledMeta{
		Context: run(d.RunID, d.ExecutionID), Reason: d.Reason, By: d.By, Title: d.Title, ExecutionMS: d.DurationMS,
	}
	if d.Partial != "" {
		m.Partial = &wire.PartialResult{Output: d.Partial}
	}
	return wire.Frame{Event: wire.SolverCancelled, Content: wire.TaskRef{TaskID: d.StepID}, Metadata: m, ShowContent: c.words.taskCancelled}
}

func taskRestarted(c *Codec, _ event.Event, d event.StepRestartedData) wire.Frame {
	return wire.Frame{
		Event: wire.SolverRestarted, Content: wire.SolverRestartedContent{TaskID: d.StepID, PreviousError: d.PreviousError},
		Metadata: wire.SolverRestartedMeta{
			Context: run(d.RunID, d.ExecutionID), Attempt: d.Attempt, MaxAttempts: d.MaxAttempts, Reason: d.Reason, By: d.By, BackoffMS: d.BackoffMS,
		},
		ShowContent: fmt.Sprintf(c.words.restarted, d.Attempt, d.MaxAttempts),
	}
}

func runProgressed(c *Codec, _ event.Event, d event.RunProgressedData) wire.Frame {
	done := 0
	if d.Total > 0 {
		done = min((d.Completed+d.Failed+d.Cancelled)*percent/d.Total, percent)
	}
	return wire.Frame{
		Event: wire.SolverProgress, Content: wire.SolverProgressContent{CurrentTask: first(d.Title, d.StepID), Status: d.Status},
		Metadata: wire.SolverProgressMeta{
			Context: run(d.RunID, d.ExecutionID), TaskID: d.StepID, Percent: done, Completed: d.Completed, Failed: d.Failed,
			Cancelled: d.Cancelled, Total: d.Total, ElapsedMS: d.ElapsedMS,
		},
		ShowContent: fmt.Sprintf(c.words.progress, done),
	}
}

func aggregateStarted(c *Codec, _ event.Event, d event.AggregateStartedData) wire.Frame {
	return wire.Frame{Event: wire.AggregateStart, ShowContent: c.words.aggregating, Metadata: wire.AggregateStartMeta{
		Context: run(d.RunID, d.ExecutionID), TaskCount: d.StepCount, Completed: d.Completed, Failed: d.Failed,
	}}
}

func aggregateCompleted(c *Codec, _ event.Event, d event.AggregateCompletedData) wire.Frame {
	return wire.Frame{
		Event:   wire.AggregateCompleted,
		Content: wire.AggregateContent{FinalResult: wire.FinalResult{Type: "text", Content: d.Result}, Output: d.Result},
		Metadata: wire.AggregateCompletedMeta{
			Context: run(d.RunID, d.ExecutionID), MessageID: d.MessageID, AggregationMS: d.DurationMS, Bytes: d.Bytes, Spent: spent(d.Usage),
		},
		ShowContent: c.words.aggregated,
	}
}

func pipelineCompleted(c *Codec, _ event.Event, d event.PipelineCompletedData) wire.Frame {
	return wire.Frame{Event: wire.PipelineCompleted, ShowContent: c.words.pipelineDone, Metadata: wire.PipelineMeta{
		Context: run(d.RunID, d.ExecutionID), TotalMS: d.TotalMS, PlanMS: d.PlanMS, SolveMS: d.SolveMS, AggregateMS: d.AggregateMS,
		Status: d.Status, Summary: d.Summary,
	}}
}
