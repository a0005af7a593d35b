// Package model is the seam between an agent worker and a language model.
//
// A Model answers one request: it streams text, may ask for tools, and reports
// what it consumed. The packages below it implement it: openai (any server that
// speaks chat completions), anthropic (the messages API) and demo (built in,
// offline, no language model). The suite in modeltest holds all of them to the
// same guarantees, against the servers in scripted where they speak HTTP.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Roles of a Message.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Reasons why a model stopped.
const (
	StopEnd       = "end"        // it had nothing more to say
	StopToolCalls = "tool_calls" // it waits for the results of Reply.ToolCalls
	StopLength    = "length"     // it reached the limit on its output
	StopFiltered  = "filtered"   // the provider's policy stopped it
)

// Message is one entry of the conversation that a model continues.
type Message struct {
	Role       string           // one of the Role constants
	Content    string           // text; of a tool message, the tool's result
	ToolCalls  []event.ToolCall // assistant only: what it asked for
	ToolCallID string           // tool only: the call that this is the result of
	IsError    bool             // tool only: the call failed and Content says how
}

// ToolSpec describes one tool that the model may call.
type ToolSpec struct {
	Name        string          // [A-Za-z0-9_-]{1,64}
	Description string          //
	InputSchema json.RawMessage // JSON Schema of the arguments, an object
}

// Schema is the form of an answer that is JSON.
type Schema struct {
	Name string          // [A-Za-z0-9_-]{1,64}
	JSON json.RawMessage // JSON Schema of an object, all of its members required and no others allowed
}

// Request is everything a model needs for one answer.
type Request struct {
	Model     string        // another model of the same provider, as Pick reads it, or of another one in a Set; empty = the one that was opened
	System    string        // instructions that precede the messages; may be empty
	Messages  []Message     // oldest first
	Tools     []ToolSpec    // may be empty
	MaxTokens int           // limit on the answer in tokens; 0 = the provider's own limit
	Schema    *Schema       // the text is to be JSON of this form, as far as the provider can see to it: read it with care; nil = any text
	NewID     func() string // makes ids for calls that the provider left without a usable one; must not be nil
	Now       time.Time     // what the model may take for the current time
}

// Usage is what a call consumed, in the provider's tokens.
type Usage struct {
	InputTokens  int64
	OutputTokens int64
	Known        bool // false: the provider did not say, and the figures mean nothing
}

// Reply is a whole answer.
//
// The arguments of every tool call are valid JSON. If the model produced
// arguments that are not, they are passed on as one JSON string holding the text
// as it came: no tool accepts a string, so the model is told by the schema check
// and can do better.
type Reply struct {
	Text       string
	ToolCalls  []event.ToolCall // ids are unique within the conversation
	StopReason string           // one of the Stop constants
	Usage      Usage
	Model      string // the model as the provider names it; may be more exact than the one asked for
}

// Failure is why a provider gave no answer.
type Failure struct {
	Fault *fault.Fault  // with a MODEL_* code; its cause holds the provider's words, fit for logs
	Retry bool          // the same request may be answered if it is made again soon
	After time.Duration // not before that, the provider asks; 0 = it did not say

	Said event.ProviderError // the provider's words, or those of the network: without keys, bounded, for operators
}

// Error returns the fault's text for logs.
func (f *Failure) Error() string { return f.Fault.Error() }

// Unwrap returns the fault.
func (f *Failure) Unwrap() error { return f.Fault }

// Model answers requests. All methods may be called from any number of goroutines.
type Model interface {
	// Name returns the specification that the model was opened with, such as "openai:gpt-x".
	Name() string

	// Generate answers req. Text is passed to onText piece by piece, in order and
	// from the calling goroutine; the pieces concatenate to Reply.Text. An error of
	// onText stops the call and is returned unchanged.
	//
	// When ctx ends, the request to the provider is closed at once and the error
	// matches ctx.Err(); a deadline that passed also is a MODEL_TIMEOUT fault. Every
	// other error is a *Failure, or a *fault.Fault if req itself is wrong (INTERNAL: a
	// tool whose schema is no JSON), and never holds a key.
	//
	// Generate asks the provider once and repeats no request that failed: the caller
	// knows what has been said, and for how long people have waited. A stream that ends
	// early is an error, never an answer.
	Generate(ctx context.Context, req Request, onText func(string) error) (Reply, error)

	// Close releases idle connections. Calls that are on go on.
	Close() error
}

// Pick returns the name of the model that a request wants: the one that was opened, or
// another one of the same provider, which may be written as a whole specification.
func (r Request) Pick(prefix, opened string) string {
	if r.Model == "" {
		return opened
	}
	return strings.TrimPrefix(r.Model, prefix+":")
}

// Asked returns the specification of the model that answers when m is asked for another
// one: that of m itself if other is empty.
func Asked(m Model, other string) string {
	prefix := prefixOf(m)
	if provider, named := Provided(other); named && provider != prefix {
		return other
	}
	if other == "" || other == prefix {
		return m.Name()
	}
	return prefix + ":" + strings.TrimPrefix(other, prefix+":")
}

// Ended returns the error that Generate owes to a ctx which has ended.
func Ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.New(fault.ModelTimeout).Wrap(ctx.Err())
	}
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("model call stopped: %w: %w", ctx.Err(), cause)
	}
	return fmt.Errorf("model call stopped: %w", ctx.Err())
}
