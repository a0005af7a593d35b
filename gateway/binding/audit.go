package binding

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// RecordRequest records a request to a service that changes something. Of a call of a tool it names server and tool.
func RecordRequest(c Reporter, service, verb id.Name, data json.RawMessage, err error) {
	r := outcome(err)
	r.Service, r.Verb = service.String(), verb.String()
	var call struct{ Server, Tool string }
	if json.Unmarshal(data, &call) == nil {
		r.Server, r.Tool = clipped(call.Server), clipped(call.Tool)
	}
	c.Record(audit.Command, r)
}

// maxAuditText bounds texts of clients in records.
const maxAuditText = 256

func clipped(s string) string { return s[:min(len(s), maxAuditText)] }

// RecordState records that a state was exported or imported, or was refused.
func RecordState(c Reporter, action id.Name, log subject.Log, err error) {
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
