package myagent_test

import "github.com/waggle-dev/waggle/proto-schemas/myagent"

// shape is what the content and the metadata of an event to the client are. Content is
// nil where there is none.
type shape struct{ content, metadata any }

// echo marks the schema of what the server sends of an event that goes both ways.
const echo = ".echo"

var shapes = map[string]shape{
	myagent.UserMessage + echo:    {"", myagent.EchoMeta{}},
	myagent.UserSolveTasks + echo: {myagent.Tasks{}, myagent.EchoMeta{}},
	myagent.PlanStart:             {myagent.PlanStartContent{}, myagent.PlanStartMeta{}},
	myagent.PlanCompleted:         {myagent.Tasks{}, myagent.PlanCompletedMeta{}},
	myagent.PlanCancelled:         {"", myagent.PlanCancelledMeta{}},
	myagent.PlanCoercionError:     {"", myagent.CoercionMeta{}},
	myagent.SolverStart:           {myagent.SolverStartContent{}, myagent.SolverStartMeta{}},
	myagent.SolverProgress:        {myagent.SolverProgressContent{}, myagent.SolverProgressMeta{}},
	myagent.SolverCompleted:       {myagent.SolverCompletedContent{}, myagent.SolverCompletedMeta{}},
	myagent.SolverStepFailed:      {myagent.StepFailedContent{}, myagent.StepFailedMeta{}},
	myagent.SolverCancelled:       {myagent.TaskRef{}, myagent.SolverCancelledMeta{}},
	myagent.SolverRestarted:       {myagent.SolverRestartedContent{}, myagent.SolverRestartedMeta{}},
	myagent.SolverRetry:           {myagent.SolverRetryContent{}, myagent.SolverRetryMeta{}},
	myagent.AgentThinking:         {"", myagent.ThinkingMeta{}},
	myagent.AgentToolCall:         {"", myagent.ToolCallMeta{}},
	myagent.AgentToolResult:       {"", myagent.ToolResultMeta{}},
	myagent.AgentPartialAnswer:    {"", myagent.PartialAnswerMeta{}},
	myagent.AgentFinalAnswer:      {"", myagent.FinalAnswerMeta{}},
	myagent.AgentUserConfirm:      {"", myagent.ConfirmMeta{}},
	myagent.AgentError:            {"", myagent.ErrorMeta{}},
	myagent.AgentInterrupted:      {"", myagent.InterruptedMeta{}},
	myagent.AgentTimeout:          {"", myagent.TimeoutMeta{}},
	myagent.AgentSessionCreated:   {myagent.SessionCreatedContent{}, myagent.SessionCreatedMeta{}},
	myagent.AgentSessionEnd:       {"", myagent.SessionEndMeta{}},
	myagent.AgentStateExported:    {nil, myagent.StateExportedMeta{}},
	myagent.AgentStateRestored:    {"", myagent.StateRestoredMeta{}},
	myagent.SystemConnected:       {myagent.ConnectedContent{}, myagent.ConnectedMeta{}},
	myagent.SystemHeartbeat:       {myagent.HeartbeatContent{}, myagent.HeartbeatMeta{}},
	myagent.SystemNotice:          {myagent.NoticeContent{}, myagent.NoticeMeta{}},
	myagent.SystemError:           {"", myagent.SystemErrorMeta{}},
	myagent.ErrorValidation:       {"", myagent.ValidationMeta{}},
	myagent.ErrorTimeout:          {"", myagent.TimeoutErrorMeta{}},
	myagent.ErrorRetryAttempt:     {nil, myagent.RetryMeta{}},
	myagent.ErrorExecution:        {"", myagent.ExecutionErrorMeta{}},
	myagent.ErrorRecoveryFailed:   {"", myagent.RecoveryFailedMeta{}},
	myagent.ErrorRateLimited:      {"", myagent.RateLimitedMeta{}},
	myagent.AggregateStart:        {nil, myagent.AggregateStartMeta{}},
	myagent.AggregateCompleted:    {myagent.AggregateContent{}, myagent.AggregateCompletedMeta{}},
	myagent.PipelineCompleted:     {nil, myagent.PipelineMeta{}},
}

// unsent are members of the original's examples that this version never sends, and why.
// The schemas have them all the same, so that the examples fit.
var unsent = map[string]string{
	"plan.start metadata.model":                        "it is on the agent.thinking that follows",
	"plan.start metadata.temperature":                  "it is the worker's setting",
	"solver.completed content.result.artifacts":        "agents of this version give texts only",
	"solver.completed metadata.quality_score":          "nothing computes one",
	"agent.tool_result metadata.result.items":          "the result is the tool's text, in output",
	"agent.tool_result metadata.result.count":          "the result is the tool's text, in output",
	"agent.partial_answer metadata.completion_percent": "how long an answer will be is not known before its end",
	"agent.partial_answer metadata.model":              "it is on the agent.thinking that precedes",
	"agent.partial_answer metadata.tokens_so_far":      "providers count at the end: see the notice with action usage",
	"error.timeout metadata.retry_after_ms":            "it is on the error.retry_attempt that follows",
}
