// Package tools runs tools for agents. Every tool is offered by an MCP server:
// programs and URLs from the configuration, and a built-in file server for the
// workspace folder.
//
// A tool server is somebody else's program, so it is treated as hostile: it may
// hang, flood, die, fork or change its mind about its tools, and then hurts only
// the calls that it was given. A program runs in its own process group, which is
// killed as a whole; what it may say is bounded in bytes; what it did when it
// died in the middle of a call is reported as unknown and never guessed.
//
// [Service] runs the servers and answers calls over the bus; [NewClient] is the
// other end. Both are a [Caller] and keep the same promises.
package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Tool is one tool on offer.
type Tool struct {
	// Name is what models call the tool: <server>_<tool>, [A-Za-z0-9_-]{1,64}. It
	// is a pure function of the two names, so it never moves to another tool.
	Name        string          `json:"name"`
	Server      string          `json:"server"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"` // a JSON Schema of an object
	// ReadOnly says that the tool changes nothing; Idempotent that a repeated call
	// with the same arguments has no further effect. Either may be repeated after
	// an unknown outcome.
	ReadOnly   bool `json:"read_only,omitempty"`
	Idempotent bool `json:"idempotent,omitempty"`
	// IdempotentUnless names a boolean argument: calls without it (or with false)
	// are idempotent although the tool as a whole is not. Empty means none.
	IdempotentUnless string `json:"idempotent_unless,omitempty"`
}

// Repeatable reports whether a call of the tool with these arguments may be
// repeated when its outcome is unknown. It is the finer form of ReadOnly ||
// Idempotent.
func (t Tool) Repeatable(arguments json.RawMessage) bool {
	if t.ReadOnly || t.Idempotent {
		return true
	}
	if t.IdempotentUnless == "" {
		return false
	}
	var args map[string]json.RawMessage
	if len(bytes.TrimSpace(arguments)) > 0 && json.Unmarshal(arguments, &args) != nil {
		return false
	}
	v, given := args[t.IdempotentUnless]
	return !given || string(v) == "false" || string(v) == "null"
}

// Call asks for one run of a tool.
type Call struct {
	// ID identifies the call within Tenant and Scope. A repeated ID joins the call
	// that is running, or gets its stored result, as long as the service instance
	// that ran it remembers it (10 minutes); it never runs a tool twice there.
	ID string `json:"id"`
	// Scope is what ID is unique in, for example the name of a session's log.
	Scope     string          `json:"scope,omitempty"`
	Tenant    id.Tenant       `json:"tenant"`
	Tool      string          `json:"tool"` // as offered
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Timeout bounds the run. Zero means the server's own limit, which also caps
	// longer ones. It does not depend on the clocks of two machines agreeing.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// Result is what a tool answered.
type Result struct {
	Text      string `json:"text"`                // valid UTF-8, cut at the server's output cap
	Truncated bool   `json:"truncated,omitempty"` // Text is not all of it
	Bytes     int    `json:"bytes"`               // length of the whole text
	IsError   bool   `json:"is_error,omitempty"`  // the tool ran and reports a failure of its own
}

// Caller lists and calls tools. It is safe for concurrent use.
//
// Errors are *fault.Fault. Nothing ran: TOOL_NOT_FOUND, INVALID_INPUT (with the
// JSON pointer of the wrong value), TOOLS_UNAVAILABLE, OVERLOADED. The tool was
// started: TOOL_FAILED (its server refused or broke the protocol in answering),
// TOOL_TIMEOUT, TOOL_CANCELLED, and TOOL_LOST, after which only a human can tell
// whether a tool that is not repeatable had its effect. Repeatable tools are run a
// second time by the service itself before TOOL_LOST is reported.
//
// When ctx ends, the tool is stopped: Call returns TOOL_CANCELLED once that is
// confirmed, the result if the tool was faster, or TOOL_LOST if nothing was heard.
type Caller interface {
	// List returns the tools on offer to the tenant, sorted by name. Tools of
	// servers that are not connected are not listed.
	List(ctx context.Context, tenant id.Tenant) ([]Tool, error)
	// Call runs a tool and returns its result.
	Call(ctx context.Context, call Call) (Result, error)
}
