package edge

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// maxAuditText bounds the text of a record that a client has chosen: a path.
const maxAuditText = 256

// quiet are the verbs that have no record of this kind: acknowledgements, reports of a task's progress, and imports, which are recorded
// as such.
var quiet = []id.Name{command.Ack, command.AckClient, command.ReportTask, command.NotifyTask, command.Import}

func clipped(s string) string { return s[:min(len(s), maxAuditText)] }

// sent returns the audit record of a command that was sent, unless it is not recorded. The service that carries it out records the
// outcome.
func sent(cmd command.Command) (r audit.Record, ok bool) {
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

// refused returns the record of an answer that the gateway does not pass on, and false for other commands.
func refused(cmd command.Command, err error) (r audit.Record, ok bool) {
	if r, ok = sent(cmd); !ok || cmd.Verb != command.Answer {
		return r, false
	}
	r.Outcome, r.Code = audit.Denied, string(fault.From(err, "").Code)
	return r, true
}

// requested returns the record of a request that changes something, or was to, and false for one without a record. Of a call of a tool
// it has server and tool.
func requested(a command.Command, err error) (r audit.Record, ok bool) {
	if slices.Contains(quiet, a.Verb) {
		return r, false
	}
	r = outcome(err)
	r.Service, r.Verb = a.Service.String(), a.Verb.String()
	var call struct{ Server, Tool string }
	if json.Unmarshal(a.Data, &call) == nil {
		r.Server, r.Tool = clipped(call.Server), clipped(call.Tool)
	}
	return r, true
}

// RecordConnected records an open connection, and the roles of its principal.
func (c *Client) RecordConnected() {
	r := audit.Record{}
	for _, role := range c.Principal().Roles {
		r.Roles = append(r.Roles, string(role))
	}
	c.Record(audit.Connected, r)
}

// RecordState records that a state was exported or imported, or was refused.
func (c *Client) RecordState(action id.Name, log subject.Log, err error) {
	r := outcome(err)
	r.Kind, r.Entity = string(log.Kind), log.Entity.String()
	c.Record(action, r)
}

// outcome returns a record of the refusal, or an empty one.
func outcome(err error) (r audit.Record) {
	if err != nil {
		r.Outcome, r.Code = audit.Denied, string(fault.From(err, "").Code)
	}
	return r
}
