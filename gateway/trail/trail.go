// Package trail makes the records of the audit log: of commands and of requests.
package trail

import (
	"cmp"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// maxAuditText bounds the text of a record that a client has chosen: a path.
const maxAuditText = 256

// quiet are the commands that the audit log leaves out: acknowledgements and reports of a
// task's progress.
var quiet = []id.Name{command.Ack, command.AckClient, command.ReportTask, command.NotifyTask}

func clipped(s string) string { return s[:min(len(s), maxAuditText)] }

// Of returns the audit record of a command that was sent, unless it is not recorded. The service that carries it out records the
// outcome.
func Of(cmd command.Command) (r audit.Record, ok bool) {
	if slices.Contains(quiet, cmd.Verb) {
		return r, false
	}
	r = audit.Record{
		Outcome: audit.Sent, Service: cmd.Service.String(), Verb: cmd.Verb.String(), Entity: cmd.Key.String(), Command: cmd.ID,
	}
	switch cmd.Verb {
	case command.CallTool:
		var call command.ToolRequest
		if cmd.Decode(&call) == nil {
			r.Server, r.Tool = clipped(call.Server), clipped(call.Tool)
		}
	case command.Answer:
		var d command.AnswerQuestion
		if cmd.Decode(&d) == nil {
			r.Input, r.Digest = clipped(cmp.Or(d.InputID, d.CallID)), clipped(d.Digest)
		}
	}
	return r, true
}

// Refused returns the record of an answer that the gateway does not pass on, and false for other commands.
func Refused(cmd command.Command, err error) (r audit.Record, ok bool) {
	if r, ok = Of(cmd); !ok || cmd.Verb != command.Answer {
		return r, false
	}
	r.Outcome, r.Code = audit.Denied, string(fault.From(err, "").Code)
	return r, true
}
