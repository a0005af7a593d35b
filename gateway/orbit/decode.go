package orbit

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	wire "github.com/waggle-dev/waggle/proto-schemas/orbit"
)

// quoteLimit bounds how much of an unknown type is quoted back, in bytes: longer
// than any type, short enough for one line.
const quoteLimit = 40

// maxQuestionID is how long the id of a question may be, in characters: what the bus
// and the frames of agents allow for an id.
const maxQuestionID = 128

// members are the members of a JSON object. A map keeps their names exact, which
// decoding into a struct would not.
type members map[string]json.RawMessage

// Decode implements dialect.Codec.
func (codec) Decode(frame []byte, in dialect.Inbound) ([]dialect.Intent, error) {
	m, ok := object(frame)
	if !ok {
		return nil, invalid("", "A message must be a JSON object.")
	}
	kind, ok := text(m["type"])
	if !ok {
		return nil, invalid("type", "type must be a string.")
	}
	switch kind {
	case wire.UserMessage:
		return userMessage(m, in)
	case wire.Cancel:
		return intent(m, in, dialect.Cancel{})
	case wire.Answer:
		return answer(m, in)
	}
	return nil, fault.Newf(fault.UnknownType, "The message type %q is unknown. Send one of: %s.",
		clip(kind), strings.Join(wire.Inbound, ", ")).At("type")
}

func userMessage(m members, in dialect.Inbound) ([]dialect.Intent, error) {
	field, raw, err := content(m)
	if err != nil {
		return nil, err
	}
	s, ok := text(raw)
	if !ok {
		return nil, invalid(field, "content must be a string.")
	}
	if strings.TrimSpace(s) == "" {
		return nil, invalid(field, "content must not be empty.")
	}
	return intent(m, in, dialect.SendMessage{Content: s})
}

// answer answers a question. Silence does not allow: approved has to be there.
func answer(m members, in dialect.Inbound) ([]dialect.Intent, error) {
	if f := strict.OnlyAnswer("", m, "type", "id", "question_id", "approved", "feedback"); f != nil {
		return nil, f
	}
	question, ok := text(m["question_id"])
	if n := utf8.RuneCountInString(question); !ok || n < 1 || n > maxQuestionID {
		return nil, invalid("question_id", "question_id must be the id of the question, a string of 1 to 128 characters.")
	}
	approved := string(m["approved"]) == "true"
	if !approved && string(m["approved"]) != "false" {
		return nil, invalid("approved", "approved must be true or false.")
	}
	feedback, ok := text(m["feedback"])
	if raw, there := m["feedback"]; there && !ok && string(raw) != "null" {
		return nil, invalid("feedback", "feedback must be a string.")
	}
	return intent(m, in, dialect.Answer{InputID: question, Approved: approved, Feedback: feedback})
}

// content finds the text of a user_message. Top-level content wins over data.content,
// even if it turns out to be no text: two answers to one frame would be worse.
func content(m members) (field string, raw json.RawMessage, err error) {
	if raw, ok := m["content"]; ok {
		return "content", raw, nil
	}
	data, ok := m["data"]
	if !ok {
		return "content", nil, nil
	}
	inner, ok := object(data)
	if !ok {
		return "", nil, invalid("data", "data must be a JSON object.")
	}
	return "data.content", inner["content"], nil
}

// intent returns the one intent of a frame.
func intent(m members, in dialect.Inbound, data dialect.IntentData) ([]dialect.Intent, error) {
	intentID, err := idOf(m, in)
	if err != nil {
		return nil, err
	}
	return []dialect.Intent{{ID: intentID, Data: data}}, nil
}

// idOf is the client's id, or a fresh one where it gives none. An id that is
// not a legal token is replaced by its hash, so that a repeat is still a repeat.
func idOf(m members, in dialect.Inbound) (string, error) {
	raw, ok := m["id"]
	if !ok || string(raw) == "null" {
		return in.NewID(), nil
	}
	s, ok := text(raw)
	if !ok || s == "" {
		return "", invalid("id", "id must be a string that is not empty. Omit it to get one assigned.")
	}
	return id.EntityFromExternal(s).String(), nil
}

// object returns the members of a JSON object, and false if raw is anything else.
func object(raw []byte) (members, bool) {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	var m members
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &m) != nil {
		return nil, false
	}
	return m, true
}

// text returns the JSON string raw, and false if raw is anything else.
func text(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

func invalid(field, message string) error {
	return fault.Newf(fault.InvalidField, "%s", message).At(field)
}

func clip(s string) string {
	if len(s) > quoteLimit {
		return strings.ToValidUTF8(s[:quoteLimit], "") + "..."
	}
	return s
}
