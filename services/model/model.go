// Package model is the seam between a worker and a language model. It knows no service and no log.
//
// A Model answers one request: it streams text, may ask for tools, and reports its usage. The
// packages below implement it: openai (any server with chat completions), anthropic (the messages
// API) and demo (built in, offline, without a language model). The suite in modeltest checks the
// same guarantees for all of them, with the servers of scripted for those behind HTTP.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// Reasons why a model stopped: those of event.MessageCompletedData.
const (
	StopEnd       = event.StopEnd
	StopToolCalls = event.StopToolCalls
	StopLength    = event.StopLength
	StopFiltered  = event.StopFiltered
	StopRefused   = event.StopRefused
	StopOther     = event.StopOther
)

// Message is one entry of the conversation that a model continues.
type Message struct {
	Role       string           // one of the Role constants
	Content    string           // text; of a tool message, the tool's result
	ToolCalls  []event.ToolCall // assistant only: the requested calls
	ToolCallID string           // tool only: the call of this result
	IsError    bool             // tool only: the call failed and Content describes the failure
	Images     []Image          // user and tool only

	Reasoning string          // assistant only: what the model thought before it
	PassBack  *event.PassBack // assistant only: goes to the provider that sent it, and to no other
}

// Image is a picture that a message shows.
type Image struct {
	MediaType string // image/png, image/jpeg, image/gif, image/webp
	Data      string // base64
}

// ToolSpec describes one tool that the model may call.
type ToolSpec struct {
	Name        string          // [A-Za-z0-9_-]{1,64}
	Description string          //
	InputSchema json.RawMessage // JSON Schema of the arguments, an object
}

// Schema is the form of a JSON answer.
type Schema struct {
	Name string          // [A-Za-z0-9_-]{1,64}
	JSON json.RawMessage // JSON Schema of an object with all members required and no others allowed
}

// Request is the whole input of one answer.
type Request struct {
	Model     string        // another model of the same provider, as Pick reads it, or of another one in a Set; empty = the opened model
	System    string        // instructions that precede the messages; may be empty
	Messages  []Message     // oldest first
	Tools     []ToolSpec    // may be empty
	MaxTokens int           // limit on the answer in tokens; 0 = the provider's own limit
	Schema    *Schema       // requests JSON of this form, as far as the provider enforces it, so the reader has to check it; nil = any text
	NewID     func() string // makes ids for calls without a usable id; must not be nil
	Now       time.Time     // the model's current time
}

// Usage is the consumption of a call, in the provider's tokens. No figure is negative.
type Usage struct {
	InputTokens  int64 // all of them, cached ones included
	OutputTokens int64
	event.TokenDetails
	Known bool // false: the provider reported no usable usage, and the figures mean nothing
}

// Reply is a whole answer.
//
// The arguments of every tool call are valid JSON. Invalid arguments of the model become one JSON string with the original
// text: no tool accepts a string, so the schema check tells the model, which can correct them.
//
// A call that was cut, or whose arguments are not JSON, says so in its Invalid. A reply has text that is not blank, or calls.
type Reply struct {
	Text       string
	Reasoning  string           // as far as the model has shown it; never in the text
	PassBack   *event.PassBack  // nil: the provider wants nothing back
	ToolCalls  []event.ToolCall // ids are unique within the conversation
	StopReason string           // one of the Stop constants
	StopDetail string           // the provider's word for a reason that this version does not know, bounded
	Usage      Usage
	Model      string // the model as the provider names it; may be more exact than the requested name
	Unseen     int    // images of the request that the model was not given, because it takes none or has refused them
	LeftOut    []LeftOut
}

// LeftOut is a tool that the model was not offered.
type LeftOut struct {
	Tool   string // its name; empty: all tools
	Reason string // for operators
}

// Failure is the reason why a provider gave no answer.
type Failure struct {
	Fault *fault.Fault  // with a MODEL_* code; its cause holds the provider's words, fit for logs
	Retry bool          // the caller may soon repeat the request
	Once  bool          // the caller may repeat the request, but only once
	After time.Duration // the wait that the provider requests; 0 = not given

	Said event.ProviderError // the message of the provider or the network: without keys, bounded, for operators
}

// Error returns the fault's text for logs.
func (f *Failure) Error() string { return f.Fault.Error() }

// Unwrap returns the fault.
func (f *Failure) Unwrap() error { return f.Fault }

// Listener takes an answer piece by piece. A nil function takes nothing.
type Listener struct {
	Text      func(piece string) error
	Reasoning func(piece string) error
}

// Text returns a listener that takes the text only.
func Text(f func(piece string) error) Listener { return Listener{Text: f} }

// Say passes a piece of text on.
func (l Listener) Say(piece string) error { return pass(l.Text, piece) }

// Think passes a piece of reasoning on.
func (l Listener) Think(piece string) error { return pass(l.Reasoning, piece) }

func pass(f func(string) error, piece string) error {
	if f == nil || piece == "" {
		return nil
	}
	return f(piece)
}

// Model answers requests. All methods are safe for concurrent use.
type Model interface {
	// Name returns the specification of the opened model, such as "openai:gpt-x".
	Name() string

	// Generate answers req. It passes text and reasoning on piece by piece, in order and from the calling goroutine; the
	// pieces concatenate to Reply.Text and Reply.Reasoning. An error of the listener stops the call, and Generate returns it
	// unchanged.
	//
	// When ctx ends, Generate closes the request to the provider at once and the error matches ctx.Err(); after a deadline
	// it is a MODEL_TIMEOUT fault, too. Every other error is a *Failure, and never holds a key.
	//
	// Tools are offered in the form that the provider takes. One that has none is left out: see Reply.LeftOut.
	//
	// Generate asks the provider once and does not repeat failed requests: the caller knows the text so far, and how long
	// people have waited. (If a server refuses a member of the request that it could do without, Generate asks again without
	// it: nothing was said by then.) A stream that ends early is an error, never an answer, and so is an answer without text
	// and calls.
	Generate(ctx context.Context, req Request, to Listener) (Reply, error)

	// Close releases idle connections. Active calls continue.
	Close() error
}

// unseen is what a model is told in the place of an image.
const unseen = "(An image is left out here: this model does not take it.)"

// Blind returns the request without its images, and how many it had. The model is told that they are left out.
func (r Request) Blind() (blind Request, images int) {
	for _, m := range r.Messages {
		images += len(m.Images)
	}
	if images == 0 {
		return r, 0
	}
	blind = r
	blind.Messages = slices.Clone(r.Messages)
	for i := range blind.Messages {
		m := &blind.Messages[i]
		for range m.Images {
			m.Content = strings.TrimPrefix(m.Content+"\n\n"+unseen, "\n\n")
		}
		m.Images = nil
	}
	return blind, images
}

// Pick returns the name of the model for a request: the opened one, or another one of the same provider, which may be
// written as a whole specification.
func (r Request) Pick(prefix, opened string) string {
	if r.Model == "" {
		return opened
	}
	return strings.TrimPrefix(r.Model, prefix+":")
}

// Asked returns the specification of the model that answers when a caller asks m for another model: that of m itself if
// other is empty.
func Asked(m Model, other string) string { return Named(m.Name(), other) }

// Named is Asked for the name of a standard model.
func Named(standard, other string) string {
	prefix, _, _ := strings.Cut(standard, ":")
	if provider, named := Provided(other); named && provider != prefix {
		return other
	}
	if other == "" || other == prefix {
		return standard
	}
	return prefix + ":" + strings.TrimPrefix(other, prefix+":")
}

// Ended returns the error of Generate for an ended ctx.
func Ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.New(fault.ModelTimeout).Wrap(ctx.Err())
	}
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("model call stopped: %w: %w", ctx.Err(), cause)
	}
	return fmt.Errorf("model call stopped: %w", ctx.Err())
}

// bare is the provider whose specification is its name alone. The specifications of others name a model.
const bare = "demo"

// known are all providers. The text before the colon of any other specification is a part of a model's own name, such as
// "llama3:8b".
var known = []string{bare, "openai", "anthropic", "azure", "gemini", "mistral", "deepseek", "openrouter", "ollama", "vllm"}

// Provided returns the provider that a specification of a model names; ok is false for a bare model name.
func Provided(spec string) (provider string, ok bool) {
	prefix, _, _ := strings.Cut(spec, ":")
	return prefix, slices.Contains(known, prefix)
}

func prefixOf(m Model) string {
	prefix, _, _ := strings.Cut(m.Name(), ":")
	return prefix
}
