// Package trail makes the records of the audit log: of commands and of requests.
package trail

import (
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// maxAuditText bounds the text of a record that a client has chosen: a path.
const maxAuditText = 256

// quiet are the commands that the audit log leaves out: acknowledgements and reports of a
// task's progress.
var quiet = []id.Name{command.Ack, command.AckClient, command.ReportTask, command.NotifyTask}

func clipped(s string) string { return s[:min(len(s), maxAuditText)] }

// Of returns the audit record of a command that was accepted, unless it is not recorded.
func Of(cmd command.Command) (action id.Name, r audit.Record, ok bool) {
	if slices.Contains(quiet, cmd.Verb) {
		return action, r, false
	}
	r = audit.Record{
		Service: cmd.Service.String(), Verb: cmd.Verb.String(), Entity: cmd.Key.String(), Command: cmd.ID,
	}
	if cmd.Verb == command.CallTool {
		var call command.ToolRequest
		if cmd.Decode(&call) == nil {
			r.Server, r.Tool = clipped(call.Server), clipped(call.Tool)
		}
	}
	if cmd.Verb != command.Answer {
		return audit.Command, r, true
	}
	var d command.AnswerQuestion
	if cmd.Decode(&d) == nil {
		r.Input, r.Outcome = d.InputID, audit.Reject
		if r.Input == "" {
			r.Input = d.CallID
		}
		if d.Approved {
			r.Outcome = audit.Approve
		}
	}
	return audit.Decided, r, true
}
