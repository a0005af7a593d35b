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
		{wire.StopGeneration, true, "the member that is named stops, else all of them; what waits for them is dropped"},
		{wire.ApproveTool, true, "a tool call may run"},
		{wire.DenyTool, true, "a tool call may not run; the model is told why"},
		{wire.Pause, true, "members get no more messages; what they are doing they finish (addition)"},
		{wire.Resume, true, "waiting messages are handed on (addition)"},

		{wire.Connected, false, "the first frame of a socket"},
		{wire.SegmentStart, false, "a piece of an answer begins: a text, or a tool call"},
		{wire.SegmentContent, false, "the next part of it"},
		{wire.SegmentEnd, false, "it is whole, or does not count: metadata.discarded"},
		{wire.AgentStatus, false, "what an agent does from now on"},
		{wire.TeamStatus, false, "how a team is from now on"},
		{wire.ToolApprovalRequested, false, "may this tool call run?"},
		{wire.ToolAutoExecuting, false, "a tool call runs that nobody has to be asked about (addition)"},
		{wire.ToolApproved, false, "the one answer that counts: it may"},
		{wire.ToolDenied, false, "the one answer that counts: it may not; or nobody answered in time"},
		{wire.ToolExecutionStarted, false, "the tool has the call"},
		{wire.ToolExecutionSucceeded, false, "the tool's result"},
		{wire.ToolExecutionFailed, false, "the call has no result, or nobody knows"},
		{wire.ToolLog, false, "a line about a tool call"},
		{wire.AssistantComplete, false, "a whole message of an agent"},
		{wire.TodoListUpdate, false, "an agent's whole list of things to do"},
		{wire.InterAgentMessage, false, "a message from another agent, at its receiver"},
		{wire.TaskNotification, false, "a message from the system: a task on the board is yours, a message was dropped, a notice"},
		{wire.TaskPlanEvent, false, "the whole board or plan, or what has become of one of its tasks"},
		{wire.ArtifactPersisted, false, "an agent has made a file"},
		{wire.ArtifactUpdated, false, "an agent has changed a file"},
		{wire.MessageAccepted, false, "the team has a user's message, and is not idle again before that is done (addition)"},
		{wire.Error, false, "a failure, of an agent or of what the client sent"},
	}
}
