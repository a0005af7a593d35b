package swarm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/sdk/go/link"
)

var (
	// ErrClosed is the error of calls after Close.
	ErrClosed = errors.New("swarm: closed")
	// ErrInterrupted says that the connection broke before the answer came: the request may have
	// been carried out, or not.
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
	Field   string          // the offending member of the frame; may be empty
	TaskID  string          // the task concerned; may be empty
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

// plain puts the end of a connection into words.
func plain(err error) error {
	if errors.Is(err, link.ErrClosed) {
		return ErrClosed
	}
	if r, ok := errors.AsType[*link.RefusedError](err); ok {
		hint := ""
		switch r.Status {
		case http.StatusUnauthorized:
			hint = "; a token is missing or not valid"
		case http.StatusNotFound:
			hint = "; check the path of the URL"
		}
		return fmt.Errorf("swarm: the server refused the connection (HTTP %d %s)%s", r.Status, http.StatusText(r.Status), hint)
	}
	if d, ok := errors.AsType[*link.DialError](err); ok {
		return fmt.Errorf("swarm: %w", d)
	}
	if c, ok := errors.AsType[*link.ClosedError](err); ok {
		return fmt.Errorf("swarm: the server closed the connection: %s (%d)", c.Reason, c.Code)
	}
	if c, ok := errors.AsType[websocket.CloseError](err); ok {
		return fmt.Errorf("swarm: the server closed the connection: %s (%d)", c.Reason, int(c.Code))
	}
	return err
}
