package myagent

import (
	"fmt"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// mode returns the protocol's word for the mode of a run: it calls steps tasks.
func mode(of string) string {
	if of == event.ModeSteps {
		return "tasks"
	}
	return of
}

func runStarted(c *Codec, _ event.Event, d event.RunStartedData) wire.Frame {
	return c.detail(c.words.runStarted, wire.NoticeMeta{
		Work: wire.Work{Context: run(d.RunID, d.ExecutionID)}, Action: wire.ActionRunStarted, MessageID: d.MessageID, Mode: mode(d.Mode),
	})
}

func runCompleted(c *Codec, _ event.Event, d event.RunCompletedData) wire.Frame {
	m := wire.FinalAnswerMeta{
		Context: run(d.RunID, d.ExecutionID), MessageID: d.MessageID, Status: first(d.Outcome, "success"), GenerationMS: &d.DurationMS,
	}
	code, text, short := event.AnswerNotice(d.StopReason, "")
	if !short {
		return finalAnswer(d.Content, m, d.Usage)
	}
	m.StopReason = d.StopReason
	f := finalAnswer(d.Content, m, d.Usage)
	f.ShowContent = fmt.Sprintf(c.words.incomplete, d.Content, first(c.words.notices[code], text)) // people may not see the notice
	return f
}

// runFailed is a final answer where the user is owed one, and an error otherwise.
func runFailed(c *Codec, _ event.Event, d event.RunFailedData) wire.Frame {
	if d.Answer == "" {
		return c.agentError(d.Message, wire.ErrorMeta{Context: run(d.RunID, d.ExecutionID), ErrorType: d.Code, Operation: "run"})
	}
	v, kind, _ := judged(d.Code)
	m := wire.FinalAnswerMeta{Context: run(d.RunID, d.ExecutionID), Status: "failed", ErrorCode: v.code, ErrorType: kind}
	if d.DurationMS > 0 {
		m.GenerationMS = &d.DurationMS
	}
	return finalAnswer(d.Answer, m, d.Usage)
}

func runCancelled(c *Codec, _ event.Event, d event.RunCancelledData) wire.Frame {
	return wire.Frame{
		Event: wire.AgentInterrupted, Content: "Execution cancelled",
		Metadata:    wire.InterruptedMeta{Context: run(d.RunID, d.ExecutionID), Reason: d.Reason, By: d.By},
		ShowContent: c.words.interrupted,
	}
}

// turnStarted is news only once for each piece of work, but a viewer of a task is told
// that another worker has taken it up.
func turnStarted(c *Codec, _ event.Event, d event.JobStartedData) wire.Frame {
	if d.Resumed && d.Stage == event.StageSolving {
		return c.solverRetry(d.StepID, wire.SolverRetryMeta{
			Work: work(d.RunID, d.ExecutionID, d.Part), Attempt: d.Attempt, MaxAttempts: d.MaxAttempts, Model: d.Model,
		})
	}
	return c.thinking(begun(d.Stage), wire.ThinkingMeta{
		Work: work(d.RunID, d.ExecutionID, d.Part), Model: d.Model, MaxTokens: d.MaxTokens, Attempt: d.Attempt, Resumed: d.Resumed,
	})
}

// begun says what an agent that begins a stage thinks about.
func begun(stage string) string {
	switch stage {
	case event.StagePlanning:
		return "Analyzing the task and planning approach..."
	case event.StageSolving:
		return "Working on the task..."
	case event.StageAggregation:
		return "Putting the results together..."
	}
	return "Thinking about the message..."
}

func (c *Codec) thinking(text string, m wire.ThinkingMeta) wire.Frame {
	return wire.Frame{Event: wire.AgentThinking, Content: text, Metadata: m, ShowContent: c.words.thinking}
}

func (c *Codec) solverRetry(step string, m wire.SolverRetryMeta) wire.Frame {
	m.Reason = "worker_lost"
	show := c.words.retrying
	if m.MaxAttempts > 0 {
		show = fmt.Sprintf(c.words.retryingOf, m.Attempt, m.MaxAttempts)
	}
	return wire.Frame{Event: wire.SolverRetry, Content: wire.SolverRetryContent{StepName: step}, Metadata: m, ShowContent: show}
}

// turnFailed has three names: a task that took too long, a model that did, and the rest.
func turnFailed(c *Codec, _ event.Event, d event.JobFailedData) wire.Frame {
	v, kind, _ := judged(d.Code)
	text, where := said(d.Code, d.Message), work(d.RunID, d.ExecutionID, d.Part)
	again := d.Retryable && d.Try < d.MaxTries
	switch fault.Code(d.Code) {
	case fault.TaskTimeout:
		m := wire.TimeoutErrorMeta{
			Work: where, ErrorCode: v.code, ErrorType: kind, TimeoutSeconds: d.TimeoutSeconds, ElapsedSeconds: seconds(d.ElapsedMS),
			Strategy: askUser, Attempt: d.Try, MaxAttempts: d.MaxTries,
		}
		if again {
			m.Strategy = retry
		}
		return c.timeout(text, m)
	case fault.ModelTimeout:
		return wire.Frame{Event: wire.AgentTimeout, Content: text, ShowContent: c.words.timeout, Metadata: wire.TimeoutMeta{
			Work: where, Duration: seconds(d.ElapsedMS), Timeout: d.TimeoutSeconds, ErrorCode: v.code, ErrorType: kind,
			Attempt: d.Try, MaxAttempts: d.MaxTries, Recoverable: again,
		}}
	}
	return wire.Frame{
		Event: wire.ErrorExecution, Content: text, ShowContent: fmt.Sprintf(c.words.executionError, c.words.people(d.Code, text)),
		Metadata: wire.ExecutionErrorMeta{
			Work: where, ErrorCode: v.code, ErrorType: kind, Recoverable: again, Attempt: d.Try, MaxAttempts: d.MaxTries, ExecutionMS: d.ElapsedMS,
		},
	}
}

func (c *Codec) timeout(text string, m wire.TimeoutErrorMeta) wire.Frame {
	limit := fmt.Sprint(m.TimeoutSeconds)
	if m.TimeoutSeconds == 0 {
		limit = fmt.Sprint(m.ElapsedSeconds)
	}
	return wire.Frame{Event: wire.ErrorTimeout, Content: text, Metadata: m, ShowContent: fmt.Sprintf(c.words.tooLong, limit)}
}

func retryScheduled(c *Codec, _ event.Event, d event.RetryScheduledData) wire.Frame {
	return c.retries(wire.RetryMeta{
		Work: work(d.RunID, d.ExecutionID, d.Part), Attempt: d.Attempt, MaxAttempts: d.MaxAttempts, RetryAfterMS: d.RetryAfterMS,
	}, d.Code, d.Message)
}

// requestFailed counts requests to the model, not attempts at the task.
func requestFailed(c *Codec, _ event.Event, d event.RequestFailedData) wire.Frame {
	return c.retries(wire.RetryMeta{
		Work: work(d.RunID, d.ExecutionID, d.Part), Attempt: d.Try, MaxAttempts: d.MaxTries, RetryAfterMS: d.RetryAfterMS,
		MessageID: d.MessageID, NextModel: d.NextModel,
	}, d.Code, d.Message)
}

// retries says what has failed, and when it is tried again.
func (c *Codec) retries(m wire.RetryMeta, code, message string) wire.Frame {
	v, kind, _ := judged(code)
	m.ErrorCode, m.ErrorType, m.ErrorMessage = v.code, kind, said(code, message)
	problem, pause := c.words.problem(code, m.ErrorMessage), event.RequestFailedData{RetryAfterMS: m.RetryAfterMS}.Seconds()
	text := fmt.Sprintf(c.words.retryIn, problem, pause, m.Attempt+1, m.MaxAttempts)
	if m.NextModel != "" {
		text = fmt.Sprintf(c.words.retryWith, problem, pause, m.NextModel, m.Attempt+1, m.MaxAttempts)
	}
	return wire.Frame{Event: wire.ErrorRetryAttempt, Metadata: m, ShowContent: text}
}

func attemptRefused(c *Codec, _ event.Event, d event.AttemptRefusedData) wire.Frame {
	return c.notice(c.words.refused, wire.NoticeMeta{
		Work: work(d.RunID, "", d.Part), Action: wire.ActionAttemptRefused,
		Attempt: d.Attempt, Current: d.Current, Worker: d.Worker, Refused: string(d.What),
	})
}

// detail is a notice where everything is shown, and nothing elsewhere: the original says
// none of it, and its web client makes a card of every notice.
func (c *Codec) detail(text string, m wire.NoticeMeta) wire.Frame {
	if c.texts != every {
		return wire.Frame{}
	}
	return c.notice(text, m)
}

// messageStarted is news only where everything is shown: that a piece of work was taken
// up has been said.
func messageStarted(c *Codec, _ event.Event, d event.MessageStartedData) wire.Frame {
	if c.texts != every {
		return wire.Frame{}
	}
	return c.thinking(begun(d.Stage), wire.ThinkingMeta{
		Work: work(d.RunID, d.ExecutionID, d.Part), Model: d.Model, MessageID: d.MessageID, Attempt: d.Attempt,
	})
}

// shows reports whether a text of a stage is shown while it is written. A plan and the
// work of its tasks is shown by what comes of it, as the original does.
func (c *Codec) shows(stage string) bool {
	return c.texts == every || c.texts == merged && stage != event.StagePlanning && stage != event.StageSolving
}

// reasoningDelta is a piece of what the model thinks, where its text is shown as it comes.
func reasoningDelta(c *Codec, e event.Event, d event.ReasoningDeltaData) wire.Frame {
	if !c.shows(d.Stage) {
		return wire.Frame{}
	}
	return c.thoughts(d.Text, wire.ThinkingMeta{
		Work: work(d.RunID, d.ExecutionID, d.Part), MessageID: d.MessageID, Attempt: d.Attempt, MergedFrom: mergedFrom(e),
	})
}

// reasoningCompleted is the whole reasoning where no piece of it has been shown.
func reasoningCompleted(c *Codec, _ event.Event, d event.ReasoningCompletedData) wire.Frame {
	m := wire.ThinkingMeta{Work: work(d.RunID, d.ExecutionID, d.Part), MessageID: d.MessageID, Attempt: d.Attempt}
	switch {
	case c.texts == every:
		length := utf8.RuneCountInString(d.Content)
		m.Reasoning, m.TotalLength = true, &length
		f := c.thinking("The model has finished thinking.", m)
		f.ShowContent = c.words.thought
		return f
	case d.Content == "", c.shows(d.Stage):
		return wire.Frame{}
	}
	return c.thoughts(d.Content, m)
}

// thoughts are what a model thinks.
func (c *Codec) thoughts(text string, m wire.ThinkingMeta) wire.Frame {
	m.Reasoning = true
	return wire.Frame{Event: wire.AgentThinking, Content: text, Metadata: m, ShowContent: strict.Cut(text, longText)}
}

// mergedFrom is the first event of those that a frame stands for, 0 if it stands for one.
func mergedFrom(e event.Event) uint64 {
	if e.From < e.Sequence {
		return e.From
	}
	return 0
}

// Gathers returns which parts of texts the variant wants to be put together, as far as they come soon after each other: several
// deltas of one message as one event (Event.From). nil means none. A part for which it reports true has a frame.
func (c *Codec) Gathers() func(event.MessageDeltaData) bool {
	if c.texts != merged {
		return nil
	}
	return func(d event.MessageDeltaData) bool { return c.shows(d.Stage) }
}

// messageDelta is a piece of an answer, but the text of a planner answers no person.
func messageDelta(c *Codec, e event.Event, d event.MessageDeltaData) wire.Frame {
	if !c.shows(d.Stage) {
		return wire.Frame{}
	}
	merged := mergedFrom(e)
	where := work(d.RunID, d.ExecutionID, d.Part)
	if d.Stage == event.StagePlanning {
		return c.thinking(d.Text, wire.ThinkingMeta{Work: where, MessageID: d.MessageID, Attempt: d.Attempt, MergedFrom: merged})
	}
	return wire.Frame{
		Event: wire.AgentPartialAnswer, Content: d.Text, ShowContent: strict.Cut(d.Text, longText),
		Metadata: wire.PartialAnswerMeta{Work: where, MessageID: d.MessageID, Streaming: true, Attempt: d.Attempt, MergedFrom: merged},
	}
}

// messageCompleted closes a text where everything is shown. It holds none itself: the pieces have been shown, and elsewhere it would
// be a blank card of the original's web client.
func messageCompleted(c *Codec, _ event.Event, d event.MessageCompletedData) wire.Frame {
	if c.texts != every {
		return wire.Frame{}
	}
	where := work(d.RunID, d.ExecutionID, d.Part)
	if d.Stage == event.StagePlanning {
		return c.thinking("The planner has answered.", wire.ThinkingMeta{
			Work: where, MessageID: d.MessageID, Attempt: d.Attempt, StopReason: d.StopReason,
		})
	}
	length := utf8.RuneCountInString(d.Content)
	return wire.Frame{Event: wire.AgentPartialAnswer, Content: "", Metadata: wire.PartialAnswerMeta{
		Work: where, MessageID: d.MessageID, Streaming: true, Final: true, TotalLength: &length, StopReason: d.StopReason, Attempt: d.Attempt,
	}}
}

// messageDiscarded is news to those who were shown some of the text.
func messageDiscarded(c *Codec, _ event.Event, d event.MessageDiscardedData) wire.Frame {
	if c.texts != every && (d.Silent || !c.shows(d.Stage)) {
		return wire.Frame{}
	}
	return c.notice(c.words.discarded, wire.NoticeMeta{
		Work: work(d.RunID, d.ExecutionID, d.Part), Action: wire.ActionTextDiscarded, MessageID: d.MessageID, Reason: d.Reason, Attempt: d.Attempt,
	})
}

func toolCalled(c *Codec, _ event.Event, d event.ToolCalledData) wire.Frame {
	return wire.Frame{
		Event: wire.AgentToolCall, Content: first(d.Description, "Calling "+d.Tool), ShowContent: c.words.toolCall,
		Metadata: wire.ToolCallMeta{
			Work: work(d.RunID, d.ExecutionID, d.Part), ToolName: d.Tool, ToolArgs: asObject(d.Arguments), CallID: d.CallID, Attempt: d.Attempt,
		},
	}
}

// toolStarted is a retry for those who watch a task, where an attempt that died had
// called the tool before.
func toolStarted(c *Codec, _ event.Event, d event.ToolStartedData) wire.Frame {
	where := work(d.RunID, d.ExecutionID, d.Part)
	if d.Retry && d.Stage == event.StageSolving {
		return c.solverRetry(d.Tool, wire.SolverRetryMeta{Work: where, Attempt: d.Attempt, CallID: d.CallID, ToolName: d.Tool})
	}
	return c.detail(fmt.Sprintf(c.words.toolStarted, d.Tool), wire.NoticeMeta{
		Work: where, Action: wire.ActionToolStarted, ToolName: d.Tool, CallID: d.CallID, Attempt: d.Attempt,
	})
}

func toolCompleted(c *Codec, _ event.Event, d event.ToolCompletedData) wire.Frame {
	return c.toolResult(first(strict.Cut(d.Result, longText), "The tool returned nothing"), wire.ToolResultMeta{
		Work: work(d.RunID, d.ExecutionID, d.Part), ToolName: d.Tool, CallID: d.CallID, ExecutionMS: &d.DurationMS, Attempt: d.Attempt,
		Result: wire.ToolResult{Status: "success", Output: d.Result, Truncated: d.Truncated, Bytes: d.Bytes},
	})
}

func toolFailed(c *Codec, _ event.Event, d event.ToolFailedData) wire.Frame {
	v, kind, _ := judged(d.Code)
	text := said(d.Code, d.Message)
	return c.toolResult("Failed: "+strict.Cut(text, longText), wire.ToolResultMeta{
		Work: work(d.RunID, d.ExecutionID, d.Part), ToolName: d.Tool, CallID: d.CallID, ExecutionMS: &d.DurationMS, Attempt: d.Attempt,
		Result: wire.ToolResult{Status: "failed", Error: text, ErrorCode: v.code, ErrorType: kind},
	})
}

func toolUnknown(c *Codec, _ event.Event, d event.ToolUnknownData) wire.Frame {
	v, kind, _ := judged(string(fault.ToolLost))
	text := said(kind, d.Message)
	return c.toolResult("Outcome unknown: "+strict.Cut(text, longText), wire.ToolResultMeta{
		Work: work(d.RunID, d.ExecutionID, d.Part), ToolName: d.Tool, CallID: d.CallID, Attempt: d.Attempt,
		Result: wire.ToolResult{Status: "unknown", Error: text, ErrorCode: v.code, ErrorType: kind},
	})
}

func (c *Codec) toolResult(text string, m wire.ToolResultMeta) wire.Frame {
	return wire.Frame{Event: wire.AgentToolResult, Content: text, Metadata: m, ShowContent: c.words.toolResult}
}

func usageRecorded(c *Codec, _ event.Event, d event.UsageRecordedData) wire.Frame {
	return c.detail(fmt.Sprintf(c.words.usage, d.Model), wire.NoticeMeta{
		Work: work(d.RunID, d.ExecutionID, d.Part), Action: wire.ActionUsage, MessageID: d.MessageID, Model: d.Model, Attempt: d.Attempt,
		TokensUsed: split(&wire.Tokens{Input: &d.InputTokens, Output: &d.OutputTokens}, d.TokenDetails), CostUSD: d.CostUSD,
	})
}
