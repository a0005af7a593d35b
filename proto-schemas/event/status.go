package event

// AgentStatus is what an agent is doing, as viewers of teams see it.
type AgentStatus = string

// The statuses of an agent.
const (
	AgentUninitialized    AgentStatus = "uninitialized"
	AgentIdle             AgentStatus = "idle"
	AgentProcessingInput  AgentStatus = "processing_user_input"
	AgentAwaitingModel    AgentStatus = "awaiting_llm_response"
	AgentAnalyzing        AgentStatus = "analyzing_llm_response"
	AgentAwaitingApproval AgentStatus = "awaiting_tool_approval"
	AgentToolDenied       AgentStatus = "tool_denied"
	AgentExecutingTool    AgentStatus = "executing_tool"
	AgentProcessingResult AgentStatus = "processing_tool_result"
	AgentShutdown         AgentStatus = "shutdown_complete"
	AgentError            AgentStatus = "error"
)

// agentStatuses holds the status that an agent has after an event of its log. Types
// that are not in it change nothing.
var agentStatuses = map[Type]AgentStatus{
	AgentCreated:     AgentIdle,
	RunStarted:       AgentProcessingInput,
	TurnStarted:      AgentProcessingInput,
	MessageStarted:   AgentAwaitingModel,
	MessageCompleted: AgentAnalyzing,
	InputRequested:   AgentAwaitingApproval,
	TurnPaused:       AgentAwaitingApproval,
	ToolCalled:       AgentExecutingTool,
	ToolStarted:      AgentExecutingTool,
	ToolCompleted:    AgentProcessingResult,
	ToolFailed:       AgentProcessingResult,
	ToolUnknown:      AgentProcessingResult,
	RunCompleted:     AgentIdle,
	RunCancelled:     AgentIdle,
	RunFailed:        AgentError,
	AgentClosed:      AgentShutdown,
}

// StatusAfter returns the status that an agent has after an event of its log; ok is
// false if the event does not change it.
func StatusAfter(e Event) (status AgentStatus, ok bool) {
	if e.Type == InputAnswered {
		d, err := As[InputAnsweredData](e)
		if err != nil {
			return "", false
		}
		if d.Scope == ScopeBudget { // the unit goes on by being taken up, or its run ends
			return "", false
		}
		if d.Decision == DecisionReject {
			return AgentToolDenied, true
		}
		return AgentExecutingTool, true
	}
	status, ok = agentStatuses[e.Type]
	return status, ok
}

// Working reports whether an agent with the status is doing something, or waits for
// people to let it go on.
func Working(status AgentStatus) bool {
	switch status {
	case "", AgentUninitialized, AgentIdle, AgentError, AgentShutdown:
		return false
	}
	return true
}
