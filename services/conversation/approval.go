package conversation

import (
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// teamTools are the tools that a team offers to its members.
var teamTools = map[string]bool{
	command.ToolSendMessage: true,
	command.ToolCreateTasks: true,
	command.ToolUpdateTask:  true,
	command.ToolListTasks:   true,
	command.ToolUpdateTodos: true,
}

// TeamTool reports whether the tool is one that a team offers its members. These run without
// approval.
func TeamTool(name string) bool { return teamTools[name] }

// QuestionOf returns the id of the question whether the call may run.
func QuestionOf(callID string) string { return "approve_" + callID }

// Approval is the question about a tool call with its answer.
type Approval struct {
	QuestionID string
	Digest     string       // of the call that was asked about, or of the changed one
	Shown      string       // digest of the tool as it was shown; empty: not known
	Decision   string       // approve, modify, reject; empty: no answer
	Over       bool         // the question is closed
	Proof      *event.Proof // of the decision
}

// Allowed reports whether people have allowed the call, as it was or as they have changed it.
func (a Approval) Allowed() bool {
	return a.Decision == event.DecisionApprove || a.Decision == event.DecisionModify
}
