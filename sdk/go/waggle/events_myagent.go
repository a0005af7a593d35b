package waggle

import (
	"encoding/json"
	"time"

	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// ofMyAgent returns the event that a frame of a session is.
func ofMyAgent(f myagent.Frame) Event {
	m := f.Meta()
	e := Event{Seq: f.Seq, Run: m.RunID, Step: m.TaskID, Raw: f.Raw}
	if read := frames[f.Event]; read != nil {
		e.Data = read(f, m)
	}
	return e
}

// frames read what frames of the session protocol say.
var frames = map[string]func(myagent.Frame, myagent.Meta) any{
	wire.UserMessage:    accepted,
	wire.UserSolveTasks: accepted,
	wire.AgentThinking:  thinking,
	wire.ErrorRetryAttempt: func(f myagent.Frame, _ myagent.Meta) any {
		return Notice{Code: myagent.As[wire.RetryMeta](f.Metadata).ErrorType, Text: f.Show}
	},
	wire.AgentPartialAnswer: delta,
	wire.AgentToolCall: func(f myagent.Frame, _ myagent.Meta) any {
		d := myagent.As[wire.ToolCallMeta](f.Metadata)
		return ToolCall{ID: d.CallID, Name: d.ToolName, Args: d.ToolArgs}
	},
	wire.AgentToolResult: func(f myagent.Frame, _ myagent.Meta) any {
		d := myagent.As[wire.ToolResultMeta](f.Metadata)
		return ToolResult{ID: d.CallID, Name: d.ToolName, Output: d.Result.Output, Error: d.Result.Error}
	},
	wire.PlanCompleted: func(f myagent.Frame, _ myagent.Meta) any {
		return Plan{Steps: myagent.As[wire.Tasks](f.Content).Tasks, Summary: myagent.As[wire.PlanCompletedMeta](f.Metadata).Summary}
	},
	wire.PlanCoercionError: func(f myagent.Frame, _ myagent.Meta) any {
		d := myagent.As[wire.CoercionMeta](f.Metadata)
		return PlanRejected{Message: d.ErrorMessage, Question: d.ConfirmStepID}
	},
	wire.PlanCancelled: func(f myagent.Frame, _ myagent.Meta) any {
		return PlanCancelled{Reason: myagent.As[wire.PlanCancelledMeta](f.Metadata).Reason}
	},
	wire.AgentUserConfirm: question,
	wire.SystemNotice:     notice,
	wire.SolverStart: func(f myagent.Frame, _ myagent.Meta) any {
		return StepStarted{Step: myagent.As[wire.SolverStartContent](f.Content).Task}
	},
	wire.SolverCompleted: func(f myagent.Frame, m myagent.Meta) any {
		d := myagent.As[wire.SolverCompletedMeta](f.Metadata)
		return StepCompleted{
			StepID: m.TaskID, Output: myagent.As[struct{ Result wire.SolverResult }](f.Content).Result.Output,
			Took: time.Duration(d.ExecutionMS) * time.Millisecond,
		}
	},
	wire.SolverStepFailed: func(f myagent.Frame, m myagent.Meta) any {
		return StepFailed{StepID: m.TaskID, Message: myagent.As[wire.StepFailedContent](f.Content).ErrorMessage}
	},
	wire.SolverCancelled: func(f myagent.Frame, _ myagent.Meta) any {
		return StepCancelled{StepID: myagent.As[wire.TaskRef](f.Content).TaskID, Reason: myagent.As[wire.SolverCancelledMeta](f.Metadata).Reason}
	},
	wire.SolverRestarted: func(f myagent.Frame, _ myagent.Meta) any {
		d := myagent.As[wire.SolverRestartedMeta](f.Metadata)
		return StepRestarted{StepID: myagent.As[wire.SolverRestartedContent](f.Content).TaskID, Attempt: d.Attempt, MaxAttempts: d.MaxAttempts}
	},
	wire.AgentFinalAnswer: answer,
	wire.AgentInterrupted: func(f myagent.Frame, _ myagent.Meta) any { return Cancelled{Text: f.Text()} },
	wire.AgentError:       failure, wire.AgentTimeout: failure, wire.ErrorTimeout: failure, wire.ErrorExecution: failure,
	wire.ErrorValidation: failure, wire.ErrorRateLimited: failure, wire.SystemError: failure,
}

func accepted(f myagent.Frame, m myagent.Meta) any {
	return Accepted{MessageID: m.MessageID, Text: f.Text()}
}

func thinking(f myagent.Frame, _ myagent.Meta) any {
	if d := myagent.As[wire.ThinkingMeta](f.Metadata); d.Reasoning {
		if d.TotalLength != nil { // its pieces have come
			return nil
		}
		return Reasoning{MessageID: d.MessageID, Text: f.Text()}
	}
	return Thinking{Text: f.Text()}
}

func delta(f myagent.Frame, m myagent.Meta) any {
	if d := myagent.As[wire.PartialAnswerMeta](f.Metadata); !d.Final {
		return Delta{MessageID: m.MessageID, Text: f.Text(), Answer: m.Stage == "aggregation"}
	}
	return nil
}

func question(f myagent.Frame, _ myagent.Meta) any {
	d := myagent.As[struct {
		Scope   string          `json:"scope"`
		Tasks   []Step          `json:"tasks"`
		Timeout int             `json:"timeout_seconds"`
		Tool    string          `json:"tool_name"`
		Args    json.RawMessage `json:"tool_args"`
	}](f.Metadata)
	return Question{
		ID: f.StepID, Scope: d.Scope, Text: f.Text(), Steps: d.Tasks, Tool: d.Tool, Args: d.Args, Timeout: seconds(d.Timeout),
	}
}

func notice(f myagent.Frame, m myagent.Meta) any {
	switch m.Action {
	case wire.ActionUserConfirm:
		by := m.By
		if by == "" {
			by = m.ClientID
		}
		return Answered{Question: m.StepID, Decision: m.Decision, By: by}
	case wire.ActionTextDiscarded:
		return Discarded{MessageID: m.MessageID}
	}
	return Notice{Code: m.Action, Text: f.Show}
}

func answer(f myagent.Frame, _ myagent.Meta) any {
	d := myagent.As[wire.FinalAnswerMeta](f.Metadata)
	a := Answer{Text: f.Text(), Status: d.Status, StopReason: d.StopReason}
	if d.TotalTokens != nil {
		a.Tokens = *d.TotalTokens
	}
	if d.CostUSD != nil {
		a.CostUSD = *d.CostUSD
	}
	return a
}

// failure reads a frame that reports an error. It ends a run only if the run could not even
// say that it failed, and a message if it was not accepted.
func failure(f myagent.Frame, m myagent.Meta) any {
	e := f.Err()
	code := e.Type
	if code == "" {
		code = e.Code
	}
	end := m.Operation == "run" || f.Event == wire.ErrorValidation && f.Seq == 0 || f.Event == wire.AgentError && m.RunID == "" && m.Context.StepID == ""
	return Failure{Err: &Error{Code: code, Message: e.Message, Field: e.Field}, End: end, MessageID: m.MessageID}
}
