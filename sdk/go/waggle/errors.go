package waggle

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
	"github.com/waggle-dev/waggle/sdk/go/waggle/team"
)

// ErrClosed is the error of calls after Close.
var ErrClosed = errors.New("waggle: closed")

// Error is an error of the server.
type Error struct {
	Code    string // of the error catalogue, such as SESSION_NOT_FOUND; empty if the server gave none
	Message string // for people: what happened, then what to do
	Field   string // the offending member of the frame; may be empty
	Status  int    // of an answer of the HTTP API; else 0
}

// Error returns the message and the code.
func (e *Error) Error() string {
	if e.Code == "" {
		return e.Message
	}
	return e.Message + " [" + e.Code + "]"
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

// problem reads a problem document (RFC 9457).
func problem(resp *http.Response, body []byte) *Error {
	var p struct{ Title, Detail, Field string }
	if json.Unmarshal(body, &p) != nil || p.Detail == "" {
		return &Error{Message: "the gateway answered " + resp.Status, Status: resp.StatusCode}
	}
	return &Error{Code: p.Title, Message: p.Detail, Field: p.Field, Status: resp.StatusCode}
}

// typed returns err with an error of a dialect as an *Error.
func typed(err error) error {
	if e, ok := errors.AsType[*myagent.Error](err); ok {
		code := e.Type
		if code == "" {
			code = e.Code
		}
		return &Error{Code: code, Message: e.Message, Field: e.Field}
	}
	if e, ok := errors.AsType[*team.Error](err); ok {
		return &Error{Code: e.Code, Message: e.Message}
	}
	return err
}
