package thread

import (
	"strings"

	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// answers are those that a client gives in one request, or its message to a team. A nil one has none. The log that the client is
// shown is locked while they are used.
type answers struct {
	of   *Stream
	name id.Name

	open    map[string]string // commands without an outcome: their questions
	refused []event.CommandRefusedData
}

// Principal implements edge.Recipient.
func (a *answers) Principal() auth.Principal { return a.of.by.Principal() }

// Receive implements edge.Recipient.
func (a *answers) Receive(_ subject.Log, e event.Event) []byte {
	a.of.direct(e)
	return edge.Confirmed
}

// note notes what the log has of them, or what a service says again about a repeated one.
func (a *answers) note(e event.Event) {
	if a == nil {
		return
	}
	switch e = event.Unwrap(e); e.Type {
	case event.TeamMessage:
		if d, err := event.As[event.TeamMessageData](e); err == nil {
			delete(a.open, d.MessageID)
		}
	case event.InputAnswered:
		if d, err := event.As[event.InputAnsweredData](e); err == nil {
			delete(a.open, d.CommandID)
		}
	case event.PlanInvalid:
		a.invalid(e)
	}
}

// invalid notes that the tasks of an answer make no plan.
func (a *answers) invalid(e event.Event) {
	d, err := event.As[event.PlanInvalidData](e)
	if err != nil {
		return
	}
	for id, question := range a.open {
		if question == d.InputID && strings.HasPrefix(e.ID, id+".") {
			delete(a.open, id)
			a.refused = append(a.refused, event.CommandRefusedData{CommandID: id, Code: d.Code, Message: d.Message, InputID: question})
		}
	}
}

// settled reports whether each answer has an outcome.
func (a *answers) settled() bool { return a == nil || len(a.open) == 0 }

func (a *answers) close() {
	if a != nil && !a.name.IsZero() {
		a.of.t.g.Recipients.Remove(a.name)
	}
}

// refuse notes the refusal of an answer. It returns false for that of anything else.
func (a *answers) refuse(e event.Event) (d event.CommandRefusedData, mine bool) {
	if a == nil || e.Type != event.CommandRefused || e.Decode(&d) != nil {
		return d, false
	}
	question, mine := a.open[d.CommandID]
	if mine {
		delete(a.open, d.CommandID)
		d.InputID = question
		a.refused = append(a.refused, d)
	}
	return d, mine
}

// refusal says why an answer has no effect, and which one has.
func refusal(d event.CommandRefusedData) map[string]any {
	out := map[string]any{}
	for name, v := range map[string]string{
		"interruptId": d.InputID, "code": d.Code, "message": d.Message, "answeredBy": d.AnsweredBy, "clientId": d.AnsweredOn, "decision": d.Decision,
	} {
		if v != "" {
			out[name] = v
		}
	}
	return out
}
