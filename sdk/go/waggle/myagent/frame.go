package myagent

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Frame is a message of the server whose content and metadata have not been
// looked at.
type Frame struct {
	Event     string          `json:"event"`
	SessionID string          `json:"session_id"`
	StepID    string          `json:"step_id"`
	Seq       uint64          `json:"seq"` // 0 = for this connection, in no log
	EventID   string          `json:"event_id"`
	Timestamp string          `json:"timestamp"`
	Content   json.RawMessage `json:"content"`
	Metadata  json.RawMessage `json:"metadata"`
	Show      string          `json:"show_content"`
	Raw       []byte          `json:"-"`
}

// Parse reads a frame.
func Parse(raw []byte) (Frame, error) {
	f := Frame{Raw: raw}
	switch err := json.Unmarshal(raw, &f); {
	case err != nil:
		return f, fmt.Errorf("the server does not speak MyAgent: %w", err)
	case f.Event == "":
		return f, errors.New("the server does not speak MyAgent: a frame names no event")
	}
	return f, nil
}

// Text returns the content if it is a text, else "".
func (f Frame) Text() string {
	var s string
	_ = json.Unmarshal(f.Content, &s) // an object is not a text
	return s
}

// Meta are members of the metadata that several events share. Absent members are empty.
type Meta struct {
	Action    string `json:"action"`
	MessageID string `json:"message_id"`
	RunID     string `json:"run_id"`
	ErrorCode string `json:"error_code"`
	ErrorType string `json:"error_type"`
	Field     string `json:"field"`
	TaskID    string `json:"task_id"`
	Stage     string `json:"stage"`
	Operation string `json:"operation"`
	StepID    string `json:"step_id"`
	LastSeq   uint64 `json:"last_seq"`
	First     uint64 `json:"first_available_seq"`
	MergedSeq uint64 `json:"merged_from"`
	Decision  string `json:"decision"`
	By        string `json:"by"`
	ClientID  string `json:"client_id"`
	Context   struct {
		StepID     string `json:"step_id"`
		AnsweredBy string `json:"answered_by"`
		Decision   string `json:"decision"`
	} `json:"context"`
}

// Meta returns the known part of the metadata.
func (f Frame) Meta() Meta { return As[Meta](f.Metadata) }

// As reads a part of a frame. An unreadable part is empty, so that the rest of the frame can be
// shown.
func As[T any](raw json.RawMessage) T {
	var v T
	_ = json.Unmarshal(raw, &v)
	return v
}

// From returns the first seq of the events that the frame shows.
func (f Frame) From() uint64 {
	if m := f.Meta().MergedSeq; m > 0 {
		return m
	}
	return f.Seq
}

// Error is a frame that reports an error.
type Error struct {
	Code    string // of the protocol, such as ERR_VAL_001
	Type    string // of the error catalogue, such as INVALID_FIELD
	Field   string // the offending member; may be empty
	Message string // for people
}

// Error returns the message and the code.
func (e *Error) Error() string {
	if e.Code == "" {
		return e.Message
	}
	return e.Message + " [" + e.Code + "]"
}

// Err returns the error that the frame reports.
func (f Frame) Err() *Error {
	m := f.Meta()
	e := &Error{Code: m.ErrorCode, Type: m.ErrorType, Field: m.Field, Message: f.Text()}
	if e.Message == "" {
		e.Message = f.Show
	}
	return e
}
