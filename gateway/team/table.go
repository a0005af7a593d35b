package team

import wire "github.com/waggle-dev/waggle/proto-schemas/team"

//go:generate go test -count=1 -run ^TestMessagesPage$ -update .

// Row is a message of the protocol with what it means.
type Row struct {
	Type  string
	In    bool // from the client
	Means string
}

// Table returns every message, those from the client first.
func Table() []Row {
	return []Row{
		{wire.SendMessage, true, "a member is to do something; without a target the coordinator"},
		{wire.StopGeneration, true, "stops the named member, or all members; drops their waiting messages"},
		{wire.ApproveTool, true, "a tool call may run"},
		{wire.DenyTool, true, "a tool call may not run; the model is told why"},
		{wire.Pause, true, "members finish their work and get no more messages (addition)"},
		{wire.Resume, true, "waiting messages are delivered (addition)"},

		{wire.Connected, false, "the first frame of a socket"},
		{wire.SegmentStart, false, "a piece of an answer begins: a text, reasoning, or a tool call"},
		{wire.SegmentContent, false, "the next part of it"},
		{wire.SegmentEnd, false, "it is whole, or does not count: metadata.discarded"},
		{wire.AgentStatus, false, "the new status of an agent"},
		{wire.TeamStatus, false, "the new status of a team"},
		{wire.ToolApprovalRequested, false, "may this tool call run?"},
		{wire.ToolAutoExecuting, false, "a tool call runs without a question (addition)"},
		{wire.ToolApproved, false, "the one answer that counts: it may"},
		{wire.ToolDenied, false, "the one answer that counts: it may not; or the time for an answer is over"},
		{wire.ToolExecutionStarted, false, "the tool has the call"},
		{wire.ToolExecutionSucceeded, false, "the tool's result"},
		{wire.ToolExecutionFailed, false, "the call failed, or its outcome is unknown"},
		{wire.ToolLog, false, "a line about a tool call"},
		{wire.AssistantComplete, false, "a whole message of an agent"},
		{wire.TodoListUpdate, false, "an agent's whole list of things to do"},
		{wire.InterAgentMessage, false, "a message from another agent, at its receiver"},
		{wire.TaskNotification, false, "a message from the system: a task on the board is yours, a message was dropped, a notice"},
		{wire.TaskPlanEvent, false, "the whole board, or what has become of one of its tasks"},
		{wire.ArtifactPersisted, false, "a member created a file"},
		{wire.ArtifactUpdated, false, "a member changed a file"},
		{wire.MessageAccepted, false, "the team has a user's message, and is not idle again before that is done (addition)"},
		{wire.Error, false, "a failure, of an agent or of what the client sent"},
	}
}
