package swarm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

var (
	// ErrClosed is returned by what was closed.
	ErrClosed = errors.New("swarm: closed")
	// ErrInterrupted says that the connection broke before the answer came: what was
	// asked for may have been carried out, or not.
	ErrInterrupted = errors.New("swarm: the connection broke before the answer came; it may have been carried out")
	// ErrCancelled is the cause (context.Cause) of the context of a task or a call that
	// the server has cancelled or given to another.
	ErrCancelled = errors.New("swarm: cancelled by the server")
)

// Error is an error of the server, or the end of a task that has failed or was
// cancelled.
type Error struct {
	Code    string          // of the error catalogue, such as AGENT_NOT_FOUND
	Message string          // for people: what happened, then what to do
	Details json.RawMessage // may be nil
	Field   string          // the offending member of what was sent, if there is one
	TaskID  string          // the task that it is about, if there is one
	Status  string          // of the end of a task: failed or cancelled; else empty
}

// Error returns the message and the code.
func (e *Error) Error() string {
	switch {
	case e.Code == "":
		return "swarm: " + e.Message
	case e.Field != "":
		return fmt.Sprintf("swarm: %s [%s, %s]", e.Message, e.Code, e.Field)
	}
	return fmt.Sprintf("swarm: %s [%s]", e.Message, e.Code)
}

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool {
	entry := fault.Lookup(fault.Code(e.Code))
	return string(entry.Code) == e.Code && entry.Retryable
}

// IsCode reports whether err is an error of the server with the code.
func IsCode(err error, code fault.Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == string(code)
}

// errorOf returns the error that a frame of type error tells of.
func errorOf(m Message) *Error {
	var c asp.ErrorContent
	if err := json.Unmarshal(m.Content, &c); err != nil {
		return &Error{Code: string(fault.Internal), Message: "the server's error cannot be read: " + err.Error()}
	}
	e := &Error{Code: c.Code, Message: c.Error, Field: c.Field, TaskID: c.TaskID}
	if c.Details != "" {
		e.Details, _ = json.Marshal(c.Details) // a string can always be encoded
	}
	return e
}

// refusal is an answer to the handshake that coming back would not change.
type refusal struct{ status int }

func (r *refusal) Error() string {
	hint := ""
	switch r.status {
	case http.StatusUnauthorized:
		hint = "; a token is missing or not valid"
	case http.StatusNotFound:
		hint = "; check the path of the URL"
	}
	return fmt.Sprintf("swarm: the server refused the connection (HTTP %d %s)%s", r.status, http.StatusText(r.status), hint)
}

// Close codes from firstFinal to lastFinal mean "do not come back as you are"; the first
// is about credentials.
const (
	firstFinal   = 4400
	unauthorized = 4401
	lastFinal    = 4499
)

// final reports whether coming back is pointless. fresh says that the next connection
// would have other credentials.
func final(err error, fresh bool) bool {
	if r, ok := errors.AsType[*refusal](err); ok {
		return !fresh || r.status != http.StatusUnauthorized
	}
	if _, ok := errors.AsType[*rejected](err); ok {
		return true
	}
	code := websocket.CloseStatus(err)
	switch code {
	case websocket.StatusProtocolError, websocket.StatusUnsupportedData, websocket.StatusInvalidFramePayloadData, websocket.StatusMessageTooBig:
		return true
	case unauthorized:
		return !fresh
	}
	return code >= firstFinal && code <= lastFinal
}

// rejected is the server's answer to a registration that coming back would not change.
type rejected struct{ err error }

func (r *rejected) Error() string { return r.err.Error() }
func (r *rejected) Unwrap() error { return r.err }

// plain puts the end of a connection into words.
func plain(err error) error {
	if c, ok := errors.AsType[websocket.CloseError](err); ok {
		return fmt.Errorf("swarm: the server closed the connection: %s (%d)", c.Reason, int(c.Code))
	}
	return err
}
