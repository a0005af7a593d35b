package event

// MemberStatus is the activity of an agent, as viewers of teams see it.
type MemberStatus = string

// The statuses of an agent.
const (
	AgentUninitialized    MemberStatus = "uninitialized"
	AgentIdle             MemberStatus = "idle"
	AgentProcessingInput  MemberStatus = "processing_user_input"
	AgentAwaitingModel    MemberStatus = "awaiting_llm_response"
	AgentAnalyzing        MemberStatus = "analyzing_llm_response"
	AgentAwaitingApproval MemberStatus = "awaiting_tool_approval"
	AgentToolDenied       MemberStatus = "tool_denied"
	AgentExecutingTool    MemberStatus = "executing_tool"
	AgentProcessingResult MemberStatus = "processing_tool_result"
	AgentShutdown         MemberStatus = "shutdown_complete"
	AgentError            MemberStatus = "error"
)

// agentStatuses holds the status of an agent after an event of the agent's log. Other types do not change it.
var agentStatuses = map[Type]MemberStatus{
	MemberCreated:    AgentIdle,
	RunStarted:       AgentProcessingInput,
	JobStarted:       AgentProcessingInput,
	MessageStarted:   AgentAwaitingModel,
	MessageCompleted: AgentAnalyzing,
	InputRequested:   AgentAwaitingApproval,
	JobSuspended:     AgentAwaitingApproval,
	ToolCalled:       AgentExecutingTool,
	ToolStarted:      AgentExecutingTool,
	ToolCompleted:    AgentProcessingResult,
	ToolFailed:       AgentProcessingResult,
	ToolUnknown:      AgentProcessingResult,
	RunCompleted:     AgentIdle,
	RunCancelled:     AgentIdle,
	RunFailed:        AgentError,
	MemberClosed:     AgentShutdown,
}

// StatusAfter returns the status of an agent after an event of the agent's log; ok is false if the event does not
// change it.
func StatusAfter(e Event) (status MemberStatus, ok bool) {
	if e.Type == InputExpired {
		if d, err := As[InputExpiredData](e); err != nil || d.Scope != ScopeAgent {
			return "", false
		}
		return AgentProcessingInput, true // the agent continues
	}
	if e.Type == InputAnswered {
		d, err := As[InputAnsweredData](e)
		if err != nil {
			return "", false
		}
		if d.Scope == ScopeBudget { // the unit continues by being taken up, or its run ends
			return "", false
		}
		if d.Scope == ScopeAgent {
			return AgentProcessingInput, true
		}
		if d.Decision == DecisionReject {
			return AgentToolDenied, true
		}
		return AgentExecutingTool, true
	}
	status, ok = agentStatuses[e.Type]
	return status, ok
}

// Working reports whether an agent with the status works, or waits for people.
func Working(status MemberStatus) bool {
	switch status {
	case "", AgentUninitialized, AgentIdle, AgentError, AgentShutdown:
		return false
	}
	return true
}
