package binding

import (
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// RecordRequest records a request to a service that changes something.
func RecordRequest(c Reporter, service, verb id.Name, err error) {
	r := outcome(err)
	r.Service, r.Verb = service.String(), verb.String()
	c.Record(audit.Command, r)
}

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
