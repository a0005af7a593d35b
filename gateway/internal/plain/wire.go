package plain

import (
	"embed"
	"encoding/json"
)

// Types of messages from the client.
const (
	Say    = "say"
	Stop   = "stop"
	Answer = "answer"
)

// Types of messages to the client.
const (
	Hello    = "hello"    // the first frame: the session, and the position in it
	Line     = "line"     // a text
	Tool     = "tool"     // a tool is called
	Question = "question" // the run waits for an answer
	Problem  = "problem"  // a failure, of the run or of a message
)

// Inbound and Outbound list the types of messages.
var (
	Inbound  = []string{Say, Stop, Answer}
	Outbound = []string{Hello, Line, Tool, Question, Problem}
)

// Schema is the bundle of the schemas of all messages.
//
//go:embed schema.json
var Schema string

// Examples holds one example for each type.
//
//go:embed examples/*.json
var Examples embed.FS

// Frame is a message to the client.
type Frame struct {
	Type    string `json:"type"`
	Seq     uint64 `json:"seq,omitempty"`    // of the event; the client resumes with it
	Member  string `json:"member,omitempty"` // of a team: the path of names
	Session string `json:"session,omitempty"`
	ID      string `json:"id,omitempty"` // of a question
	Text    string `json:"text"`
	Code    string `json:"code,omitempty"`  // of a problem
	First   uint64 `json:"first,omitempty"` // of expired history: the oldest seq that remains
}

func (f Frame) encode() []byte {
	b, err := json.Marshal(f)
	if err != nil {
		panic("plain: " + err.Error()) // texts and numbers can always be encoded
	}
	return b
}
