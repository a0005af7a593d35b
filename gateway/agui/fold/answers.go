package fold

import (
	"fmt"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Kind says what a request for a run is.
type Kind int

// The kinds, in the order in which they are looked for.
const (
	Repeat Kind = iota // the thread has the run: it is shown, and nothing is sent
	Reply              // answers questions
	Speak              // a new message of the user
	Look               // nothing new: the thread is shown
)

// Meaning is what a request for a run means in a thread.
type Meaning struct {
	Kind    Kind
	Intents []dialect.Intent // to be sent, in this order
	Unknown []string         // interrupts that the thread does not have
	Skipped []string         // parts of the message that the model cannot take
	Edited  bool             // the client's messages say something else than the thread's

	Unoffered []string // members of the request that who answers is not given: tools, context
}

// CommandID returns the id of the command for a run of a client.
func CommandID(runID string) string { return id.EntityFromExternal(runID).String() }

// unknown returns the interrupts of answers that the thread does not have.
func (t *Thread) unknown(list []wire.ResumeEntry) (out []string) {
	for _, e := range list {
		if _, known := t.Question(e.InterruptID); !known {
			out = append(out, e.InterruptID)
		}
	}
	return out
}

// Answers returns the meaning of answers under the id of a run.
func (t *Thread) Answers(runID string, list []wire.ResumeEntry, clientID string) (Meaning, error) {
	m := Meaning{Kind: Reply, Unknown: t.unknown(list)}
	for n, e := range list {
		q, known := t.Question(e.InterruptID)
		if !known {
			continue
		}
		read := func(e wire.ResumeEntry, field string) (dialect.Answer, error) {
			var more []string
			switch {
			case q.Scope == event.ScopePlan:
				more = input.OfPlans
			case q.editable:
				more = input.OfCalls
			}
			return input.Answer(e, more, field)
		}
		if q.Scope == event.ScopeAgent {
			read = func(e wire.ResumeEntry, field string) (dialect.Answer, error) {
				return input.AnswerToAgent(e, q.options, field)
			}
		}
		d, err := read(e, fmt.Sprintf("resume[%d].payload", n))
		if err != nil {
			return m, err
		}
		d.InputID, d.CallID, d.Digest, d.ClientID, d.Segment = e.InterruptID, q.ToolCallID, q.Digest, clientID, runID
		m.Intents = append(m.Intents, dialect.Intent{ID: CommandID(fmt.Sprintf("%s.%d", runID, n)), Data: d})
	}
	return m, nil
}
