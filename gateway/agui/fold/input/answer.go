package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// AnswerToAgent reads an answer to an agent of the swarm: an object with the answer alone, or the answer itself. options are
// the answers that the agent takes; none: any. field is where the answer stands in the request, for the error, which is a
// *fault.Fault.
func AnswerToAgent(e wire.ResumeEntry, options []json.RawMessage, field string) (dialect.Answer, error) {
	if e.Status == wire.ResumeCancelled {
		return dialect.Answer{Feedback: "abandoned"}, nil
	}
	answer := bytes.TrimSpace(e.Payload)
	if len(answer) == 0 || string(answer) == "null" {
		return dialect.Answer{}, strict.Wrong(field, "an object with the answer, or the answer itself")
	}
	var in map[string]json.RawMessage
	if json.Unmarshal(answer, &in) == nil && len(in) == 1 && in["answer"] != nil {
		answer, field = in["answer"], field+".answer"
	}
	if len(options) > 0 && !slices.ContainsFunc(options, func(o json.RawMessage) bool { return same(o, answer) }) {
		return dialect.Answer{}, strict.Wrong(field, "one of the options of the interrupt")
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
	Edited   json.RawMessage                       `json:"editedArgs"`
}

// Members of answers besides approved and feedback.
var (
	OfPlans = []string{"tasks", "modified"} // to the question about a plan
	OfCalls = []string{"editedArgs"}        // to the question about a call whose arguments may be changed
)

// Answer reads an answer: true, false, or an object, which may have more members if the question takes them. It refuses others,
// as they might say what the client believes to be approved. field is where the answer stands in the request, for the error,
// which is a *fault.Fault.
func Answer(e wire.ResumeEntry, more []string, field string) (d dialect.Answer, err error) {
	known := append([]string{"approved", "feedback"}, more...)
	if e.Status == wire.ResumeCancelled {
		return dialect.Answer{Feedback: "abandoned"}, nil
	}
	switch text := bytes.TrimSpace(e.Payload); {
	case string(text) == "true":
		return dialect.Answer{Approved: true}, nil
	case string(text) == "false":
		return d, nil
	case !bytes.HasPrefix(text, []byte("{")):
		return d, strict.Wrong(field, "true, false, or an object with approved, and perhaps "+strings.Join(known[1:], ", "))
	}
	all, _ := strict.Members(e.Payload)
	if f := strict.OnlyAnswer(field, all, known...); f != nil {
		return d, f
	}
	var p payload
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && bad.Field != "" {
			field += "." + bad.Field
		}
		return d, strict.Wrong(field, "as the responseSchema of the interrupt says")
	}
	return p.answer(field)
}

// answer returns the answer that an object is.
func (p payload) answer(field string) (d dialect.Answer, err error) {
	if p.Approved == nil {
		return d, strict.Wrong(field+".approved", "true or false")
	}
	if i := slices.IndexFunc(p.Tasks, func(t map[string]json.RawMessage) bool { return t == nil }); i >= 0 {
		return d, strict.Wrong(fmt.Sprintf("%s.tasks[%d]", field, i), "an object")
	}
	for id, t := range p.Modified {
		if t == nil {
			return d, strict.Wrong(field+".modified."+id, "an object")
		}
	}
	d = dialect.Answer{Approved: *p.Approved, Feedback: p.Feedback}
	if string(p.Edited) != "null" {
		d.Arguments = p.Edited
	}
	if len(d.Arguments) > 0 && (d.Arguments[0] != '{' || !d.Approved) {
		return d, strict.Wrong(field+".editedArgs", "an object, and only with approved: true")
	}
	if p.Tasks != nil {
		if d.Steps, err = plainjson.Marshal(p.Tasks); err != nil {
			return d, strict.Wrong(field+".tasks", "a list of objects").Wrap(err)
		}
	}
	if p.Modified != nil {
		if d.Modified, err = plainjson.Marshal(p.Modified); err != nil {
			return d, strict.Wrong(field+".modified", "an object").Wrap(err)
		}
	}
	return d, nil
}
