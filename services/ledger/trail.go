package ledger

import (
	"cmp"
	"errors"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/audit"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// auditFacts records the answers that count, and calls that clients carried out. Gateways record commands as sent, as they do not
// know what comes of them.
func (s *Service[S, E]) auditFacts(ref subject.Log, c cmd.Command, d decision.Decision) {
	for _, f := range d.Facts {
		switch data := f.Data.(type) {
		case event.InputAnsweredData:
			s.auditAnswer(ref, c, data)
		case event.TaskMessagedData:
			if data.InputID != "" && data.Given == nil { // the log that shows the question has the answer otherwise
				r := s.recordOf(ref, c)
				r.Input, r.Principal, r.Outcome = data.InputID, cmp.Or(data.By, c.Principal), audit.Answered
				s.deps.Audit.Record(audit.Decided, ref.Tenant, r)
			}
		}
	}
}

// auditAnswer records the answer that counts.
func (s *Service[S, E]) auditAnswer(ref subject.Log, c cmd.Command, data event.InputAnsweredData) {
	r := s.recordOf(ref, c)
	r.Input, r.Command, r.Principal = data.InputID, data.CommandID, data.By
	r.Tool = data.Tool
	action := audit.Decided
	switch {
	case data.Scope == event.ScopeClientTool:
		action, r.Outcome = audit.ToolCalled, audit.Done
		if data.Decision == event.DecisionReject {
			r.Outcome = audit.Failed
		}
	case data.Decision == event.DecisionReject:
		r.Outcome = audit.Reject
	case data.Scope == event.ScopeAgent && data.Decision != event.DecisionApprove:
		r.Outcome = audit.Answered
	default:
		r.Outcome = audit.Approve
	}
	var a cmd.AnswerQuestion
	if data.CallID != "" && c.Decode(&a) == nil {
		r.Digest = a.Digest
	}
	s.deps.Audit.Record(action, ref.Tenant, r)
}

// auditRefusal records a command of a person that has no effect.
func (s *Service[S, E]) auditRefusal(ref subject.Log, c cmd.Command, code fault.Code, input string) {
	if c.Principal == "" {
		return
	}
	r := s.recordOf(ref, c)
	r.Outcome, r.Code = audit.Denied, string(code)
	action := audit.Command
	if c.Verb == cmd.Answer {
		var a cmd.AnswerQuestion
		action, r.Input = audit.Decided, input
		if c.Decode(&a) == nil {
			r.Input, r.Digest = cmp.Or(input, a.InputID, a.CallID), clipped(a.Digest)
		}
	}
	r.Input = clipped(r.Input)
	s.deps.Audit.Record(action, ref.Tenant, r)
}

// auditFault records a command of a person that is given up for the reason.
func (s *Service[S, E]) auditFault(ref subject.Log, c cmd.Command, err error) {
	if f, ok := errors.AsType[*fault.Fault](err); ok && !f.Retryable() {
		s.auditRefusal(ref, c, f.Code, "")
	}
}

func (s *Service[S, E]) recordOf(ref subject.Log, c cmd.Command) audit.Record {
	return audit.Record{
		Principal: c.Principal, Service: c.Service.String(), Verb: c.Verb.String(), Command: c.ID,
		Kind: string(ref.Kind), Entity: ref.Entity.String(),
	}
}

// maxAuditText bounds texts of clients in records.
const maxAuditText = 256

func clipped(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxAuditText)], "") }
