package thread

import (
	"strings"
	"sync"

	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// answers are those that a client gives in one request, or its message to a team. A nil one has none.
type answers struct {
	recipients *edge.Recipients
	who        auth.Principal
	name       id.Name
	to         *entries

	mu      sync.Mutex
	open    map[string]string // commands without an outcome: their questions
	taken   int
	refused []event.CommandRefusedData
}

// Principal implements edge.Recipient.
func (a *answers) Principal() auth.Principal { return a.who }

// Receive implements edge.Recipient.
func (a *answers) Receive(_ subject.Log, e event.Event) []byte {
	a.to.tell(e)
	return edge.Confirmed
}

// note notes what the log has of them.
func (a *answers) note(e event.Event) {
	if a == nil {
		return
	}
	e = event.Unwrap(e)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch e.Type {
	case event.TeamMessage:
		if d, err := event.As[event.TeamMessageData](e); err == nil {
			a.take(d.MessageID)
		}
	case event.InputAnswered:
		if d, err := event.As[event.InputAnsweredData](e); err == nil {
			a.take(d.CommandID)
		}
	case event.PlanInvalid:
		a.invalid(e)
	}
}

// take notes that the log has what a command asks for. The caller has locked.
func (a *answers) take(commandID string) {
	if _, mine := a.open[commandID]; mine {
		delete(a.open, commandID)
		a.taken++
	}
}

// invalid notes that the tasks of an answer make no plan. The caller has locked.
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
func (a *answers) settled() bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open) == 0
}

func (a *answers) close() {
	if a != nil && !a.name.IsZero() {
		a.recipients.Remove(a.name)
	}
}

// refuse notes the refusal of an answer. It returns false for that of anything else.
func (a *answers) refuse(e event.Event) (d event.CommandRefusedData, mine bool) {
	if a == nil || e.Type != event.CommandRefused || e.Decode(&d) != nil {
		return d, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
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
