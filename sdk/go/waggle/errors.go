package waggle

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/sdk/go/link"
	"github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
	"github.com/waggle-dev/waggle/sdk/go/waggle/team"
)

// ErrClosed is the error of calls after Close.
var ErrClosed = errors.New("waggle: closed")

// Error is an error of the server.
type Error struct {
	Code    string // of the error catalogue, such as SESSION_NOT_FOUND; HTTP_502 and the like if the server gave none
	Message string // for people: what happened, then what to do
	Field   string // the offending member of the frame; may be empty
	Status  int    // of an answer of the HTTP API; else 0
	// RetryAfter is the pause that the server requests; 0 = none.
	RetryAfter time.Duration
	// Detail is the whole problem document, or the data of the event that ended a run or a task.
	Detail json.RawMessage
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
	if string(entry.Code) == e.Code {
		return entry.Retryable
	}
	return strings.HasPrefix(e.Code, "HTTP_") && isTransient(e.Status)
}

// isTransient reports whether a server that answers with the status may accept the same request later.
func isTransient(status int) bool {
	return status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooManyRequests
}

// codeOf returns the code of an answer that names none.
func codeOf(status int) string { return fmt.Sprint("HTTP_", status) }

// IsCode reports whether err is an error of the server with the code.
func IsCode(err error, code fault.Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == string(code)
}

// problem reads a problem document (RFC 9457).
func problem(resp *http.Response, body []byte) *Error {
	var p struct{ Title, Detail, Field string }
	e := &Error{Status: resp.StatusCode, RetryAfter: link.RetryAfter(resp.Header)}
	if json.Unmarshal(body, &p) != nil || p.Detail == "" || p.Title == "" {
		e.Code, e.Message = codeOf(e.Status), "the gateway answered "+resp.Status
		return e
	}
	e.Code, e.Message, e.Field, e.Detail = p.Title, p.Detail, p.Field, body
	return e
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
