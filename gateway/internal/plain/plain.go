// Package plain is the dialect of docs/how-to-add-a-protocol.md: a chat in lines of text.
package plain

import (
	"encoding/json"
	"net/url"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Dialect returns the dialect.
func Dialect() dialect.Dialect { return plain{} }

type plain struct{}

// Name implements dialect.Dialect.
func (plain) Name() string { return "plain" }

// Bind implements dialect.Dialect. The protocol has one variant.
func (plain) Bind(url.Values) (dialect.Codec, error) { return codec{}, nil }

type codec struct{}

// Name implements dialect.Codec.
func (codec) Name() string { return "plain" }

// Decode implements dialect.Codec.
func (codec) Decode(frame []byte, in dialect.Inbound) ([]dialect.Intent, error) {
	var m map[string]json.RawMessage
	if json.Unmarshal(frame, &m) != nil || m == nil {
		return nil, invalid("", "A message must be a JSON object.")
	}
	var data dialect.IntentData
	var err error
	switch kind, _ := text(m["type"]); kind {
	case Say:
		data, err = say(m)
	case Stop:
		data = dialect.Cancel{}
	case Answer:
		data, err = answer(m)
	default:
		err = fault.New(fault.UnknownType).At("type")
	}
	if err != nil {
		return nil, err
	}
	return []dialect.Intent{{ID: in.NewID(), Data: data}}, nil
}

func say(m map[string]json.RawMessage) (dialect.IntentData, error) {
	s, ok := text(m["text"])
	if !ok || s == "" {
		return nil, invalid("text", "A message has a text, which is a string that is not empty.")
	}
	return dialect.SendMessage{Content: s}, nil
}

func answer(m map[string]json.RawMessage) (dialect.IntentData, error) {
	question, ok := text(m["id"])
	if !ok || question == "" {
		return nil, invalid("id", "An answer has the id of its question.")
	}
	yes := string(m["yes"])
	if yes != "true" && yes != "false" {
		return nil, invalid("yes", "An answer says yes: true or false.")
	}
	return dialect.Answer{InputID: question, Approved: yes == "true"}, nil
}

// text returns the JSON string raw, and false if raw is anything else.
func text(raw json.RawMessage) (s string, ok bool) {
	ok = len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil
	return s, ok
}

func invalid(field, message string) error {
	return fault.Newf(fault.InvalidField, "%s", message).At(field)
}

// native has the events for which the protocol has a form of its own.
var native = map[event.Type]func(event.Event) (Frame, error){
	event.ToolCalled: func(e event.Event) (Frame, error) {
		d, err := event.As[event.ToolCalledData](e)
		return Frame{Type: Tool, Text: d.Tool}, err
	},
}

// Encode implements dialect.Codec. An event gives at most one frame, so that its seq is a
// place to resume.
func (codec) Encode(e event.Event) [][]byte {
	e = event.Unwrap(e)
	build, ok := native[e.Type]
	if !ok {
		build = neutral
	}
	f, err := build(e)
	if err != nil { // a viewer must not mistake a damaged log for silence
		f = Frame{Type: Problem, Code: string(fault.Internal), Text: "An event cannot be shown. Tell the operator its seq."}
	}
	if f.Type == "" {
		return nil
	}
	f.Seq, f.Member = e.Sequence, e.Via.Route
	return [][]byte{f.encode()}
}

// neutral returns the frame of an event in its neutral form.
func neutral(e event.Event) (Frame, error) {
	n, err := narrate.Of(e)
	if err != nil || n.Detail {
		return Frame{}, err
	}
	switch n.Kind {
	case narrate.Note, narrate.Message, narrate.Answer:
		return Frame{Type: Line, Text: n.Whole()}, nil
	case narrate.Question:
		return Frame{Type: Question, ID: n.Ask.ID, Text: n.Whole()}, nil
	case narrate.Failure:
		return Frame{Type: Problem, Code: n.Code, Text: n.Whole()}, nil
	case narrate.Silent:
	}
	return Frame{}, nil
}

// Greet implements dialect.Codec.
func (codec) Greet(g dialect.Greeting) [][]byte {
	if g.Stage != dialect.Ready {
		return nil
	}
	return [][]byte{Frame{Type: Hello, Session: g.SessionID, Seq: g.Seq}.encode()}
}

// Fail implements dialect.Codec.
func (codec) Fail(f *fault.Fault, _ time.Time) []byte {
	return Frame{Type: Problem, Code: string(f.Code), Text: f.Public()}.encode()
}

// Truncated implements dialect.Codec.
func (codec) Truncated(first uint64, _ time.Time) []byte {
	f := fault.New(fault.HeadExpired)
	return Frame{Type: Problem, Code: string(f.Code), Text: f.Public(), First: first}.encode()
}
