package agui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

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
		read := answerOf
		if q.Scope == event.ScopeAgent {
			read = q.toAgent
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

// toAgent reads an answer to an agent of the swarm: an object with the answer alone, or the answer itself.
func (q Question) toAgent(e wire.ResumeEntry, field string) (dialect.Answer, error) {
	if e.Status == wire.ResumeCancelled {
		return dialect.Answer{Feedback: "abandoned"}, nil
	}
	answer := bytes.TrimSpace(e.Payload)
	if len(answer) == 0 || string(answer) == "null" {
		return dialect.Answer{}, wrong(field, "an object with the answer, or the answer itself")
	}
	var in map[string]json.RawMessage
	if json.Unmarshal(answer, &in) == nil && len(in) == 1 && in["answer"] != nil {
		answer, field = in["answer"], field+".answer"
	}
	if len(q.options) > 0 && !slices.ContainsFunc(q.options, func(o json.RawMessage) bool { return same(o, answer) }) {
		return dialect.Answer{}, wrong(field, "one of the options of the interrupt")
	}
	return dialect.Answer{Approved: true, Message: answer}, nil
}

// same reports whether two JSON texts have the same value.
func same(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// payload is an answer in detail.
type payload struct {
	Approved *bool                                 `json:"approved"`
	Feedback string                                `json:"feedback"`
	Tasks    []map[string]json.RawMessage          `json:"tasks"`
	Modified map[string]map[string]json.RawMessage `json:"modified"`
}

// answerOf reads an answer: true, false, or an object. field is where it stands in the request.
func answerOf(e wire.ResumeEntry, field string) (d dialect.Answer, err error) {
	if e.Status == wire.ResumeCancelled {
		return dialect.Answer{Feedback: "abandoned"}, nil
	}
	switch text := bytes.TrimSpace(e.Payload); {
	case string(text) == "true":
		return dialect.Answer{Approved: true}, nil
	case string(text) == "false":
		return d, nil
	case !bytes.HasPrefix(text, []byte("{")):
		return d, wrong(field, "true, false, or an object with approved, and perhaps feedback, tasks and modified")
	}
	var p payload
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && bad.Field != "" {
			field += "." + bad.Field
		}
		return d, wrong(field, "as the responseSchema of the interrupt says")
	}
	if p.Approved == nil {
		return d, wrong(field+".approved", "true or false")
	}
	if i := slices.IndexFunc(p.Tasks, func(t map[string]json.RawMessage) bool { return t == nil }); i >= 0 {
		return d, wrong(fmt.Sprintf("%s.tasks[%d]", field, i), "an object")
	}
	for id, t := range p.Modified {
		if t == nil {
			return d, wrong(field+".modified."+id, "an object")
		}
	}
	d = dialect.Answer{Approved: *p.Approved, Feedback: p.Feedback}
	if p.Tasks != nil {
		d.Steps = raw(p.Tasks)
	}
	if p.Modified != nil {
		d.Modified = raw(p.Modified)
	}
	return d, nil
}
