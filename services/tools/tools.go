// Package tools is the contract of tools: their description, calls and results. MCP servers (package mcp), services of the
// swarm (swarm) and the workspace folder (workspace) provide tools; package service runs them, package remote calls them
// over the bus. Both ends are a [Toolbox] and keep the same promises.
//
// The packages treat a provider as a hostile program: it may hang, flood, die or change its tools, and then harms only its
// own calls. Its output is bounded in bytes and checked against the schemas that it declared. If a provider dies during a
// call, the call is reported as lost, and its outcome never guessed.
//
// No provider imports the service or another provider: a new kind of provider is a package, and one line in the service's
// routing.
package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Tool is one tool on offer.
type Tool struct {
	// Name is the name of the tool for models: <server>_<tool>, [A-Za-z0-9_-]{1,64}. It is a pure function of the two names,
	// so it never moves to another tool.
	Name        string          `json:"name"`
	Server      string          `json:"server"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"` // a JSON Schema of an object
	// OutputSchema is the schema of the tool's structured results: a result that does not fit is INVALID_OUTPUT. Empty means
	// any result.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Kind         string          `json:"kind"` // of the server: KindMCP, KindService
	Own          string          `json:"own"`  // the server's name of the tool
	// ReadOnly means that the tool changes nothing; Idempotent that a repeated call with the same arguments has no further
	// effect. Either may be repeated after an unknown outcome.
	ReadOnly   bool `json:"read_only,omitempty"`
	Idempotent bool `json:"idempotent,omitempty"`
	// IdempotentUnless names a boolean argument: calls without it (or with false) are idempotent although the tool as a
	// whole is not. Empty means that no argument matters.
	IdempotentUnless string `json:"idempotent_unless,omitempty"`
	// Policy is the operator's. The tool service enforces it; it travels with the offer so that people can be asked.
	Policy event.ToolPolicy `json:"policy"`
	// Agents means that agents of the swarm may call the tool by themselves even where the policy asks people about calls.
	Agents bool `json:"agents,omitempty"`

	// Client means that no server has the tool: the client of the run carries it out.
	Client bool `json:"-"`
}

// Definition returns the digest of what the server says of the tool: its texts, schemas and hints, and nothing of the
// operator's policy.
func (t Tool) Definition() string {
	b, err := json.Marshal([]any{t.Title, t.Description, canonical(t.InputSchema), canonical(t.OutputSchema), t.ReadOnly, t.Idempotent, t.IdempotentUnless})
	if err != nil {
		panic(fmt.Sprintf("encode the definition of a tool: %v", err)) // it holds texts
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func canonical(schema json.RawMessage) string { return string(event.Canonical(schema)) }

// Repeatable reports whether a call of the tool with these arguments may be repeated after an unknown outcome. It is the
// finer form of ReadOnly || Idempotent.
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

// Call is a request for one run of a tool.
type Call struct {
	// ID identifies the call within Tenant and Scope. A repeated ID joins the running call, or gets its stored result, as
	// long as the service instance that ran it remembers it (10 minutes); it never runs a tool twice there.
	ID string `json:"id"`
	// Scope is the range in which ID is unique, for example the name of a session's log.
	Scope  string    `json:"scope,omitempty"`
	Tenant id.Tenant `json:"tenant"`
	// Tool is the offered name, or, with Kind and Server, the server's own.
	Tool      string          `json:"tool"`
	Kind      string          `json:"kind,omitempty"`
	Server    string          `json:"server,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Timeout bounds the run. Zero means the server's own limit, which also caps longer ones. It does not require two
	// machines' clocks to agree.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Raw requests Result.Data in place of Result.Text.
	Raw bool `json:"raw,omitempty"`

	// Tainted means that the caller has read untrusted output.
	Tainted bool `json:"tainted,omitempty"`
	// Asked means that people have to have allowed the call, whatever the tool's policy is.
	Asked bool `json:"asked,omitempty"`
	// Agent means that an agent of the swarm calls by itself, and no person can be asked.
	Agent bool `json:"agent,omitempty"`
	// Approval proves that a person has allowed the call. A call that the policy asks about is refused without it.
	Approval *Approval `json:"approval,omitempty"`

	// TaskID and the next fields tell services on whose behalf the call runs.
	TaskID   string `json:"task_id,omitempty"`
	AgentID  string `json:"agent_id,omitempty"`
	ClientID string `json:"client_id,omitempty"`
	Priority string `json:"priority,omitempty"`
}

// Approval is the proof of a person's decision about one call.
type Approval struct {
	// Kind and Entity name the log in which people were asked. They are empty if the person asked for the call itself.
	Kind   id.Kind      `json:"kind,omitempty"`
	Entity id.Entity    `json:"entity,omitzero"`
	Proof  *event.Proof `json:"proof"`
	// Definition is that of the tool that people were shown. Empty if they were shown none.
	Definition string `json:"definition,omitempty"`
}

// Changed returns the fault of a call that people have approved for a tool that is another one now; nil if it is the same.
func (c Call) Changed(now Tool) error {
	if c.Approval == nil || c.Approval.Definition == "" || c.Approval.Definition == now.Definition() {
		return nil
	}
	return fault.Newf(fault.ToolDenied, "The tool %s has changed since this call was shown for approval, so it was not run. "+
		"Read its description again; a new call will be shown for approval again.", now.Name)
}

// Result is a tool's answer.
type Result struct {
	Text      string `json:"text"`                // valid UTF-8, cut at the server's output limit
	Truncated bool   `json:"truncated,omitempty"` // Text is incomplete
	Bytes     int    `json:"bytes"`               // length of the whole text
	IsError   bool   `json:"is_error,omitempty"`  // the tool ran and reports a failure
	// Data is the complete answer as JSON if the call asked for it: the service's answer, or the content array of MCP, which
	// is cut to one text if it is too long.
	Data json.RawMessage `json:"data,omitempty"`
	// Untrusted means that the answer may hold instructions of strangers.
	Untrusted bool `json:"untrusted,omitempty"`
	// Images are those of the result that models take, as far as they are small. Text names all.
	Images []Image `json:"images,omitempty"`
	// File is the file of the workspace that the call has extended, unless it is too large.
	File []byte `json:"file,omitempty"`
}

// Image is an image that a tool has returned.
type Image struct {
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// Kinds of servers, as events and commands name them.
const (
	KindMCP     = "mcp"
	KindService = "service"
)

// Server is a provider of tools: an MCP server of the configuration, or a service of the swarm with all its replicas.
type Server struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name"`
	// Type of an MCP server is stdio, http or builtin; of a service it is service.
	Type string `json:"type"`
	// Status is a status of command.Participant. A service has the best of its replicas;
	// an MCP server is active while it is connected and inactive while it is not.
	Status string `json:"status"`
	// Trouble is why an MCP server has no connection, in words for its operator, without secrets. It has several lines if the
	// program said something. Empty while it is connected, and before the first attempt has failed.
	Trouble string `json:"trouble,omitempty"`
	// LeftOut are the tools of an MCP server that are not on offer.
	LeftOut []LeftOut `json:"left_out,omitempty"`
	// Capabilities are those that a service declared, or an MCP server's tools by their own names.
	Capabilities []string        `json:"capabilities"`
	Description  string          `json:"description,omitempty"`
	Extra        json.RawMessage `json:"extra,omitempty"` // a service's other declarations, an object
	Replicas     int             `json:"replicas,omitempty"`
	Since        time.Time       `json:"since,omitzero"` // when the first replica registered
}

// LeftOut is a tool that is not on offer, and why.
type LeftOut struct {
	Tool string `json:"tool"` // the server's own name; empty if it has none
	Why  string `json:"why"`
}

// Notification is a service's message during a call.
type Notification struct {
	Type    string          `json:"type"`
	Message string          `json:"message,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	At      time.Time       `json:"at"`
}

// Caller lists and calls tools. It is safe for concurrent use.
//
// Errors are *fault.Fault. Nothing ran: TOOL_NOT_FOUND, MCP_SERVER_NOT_FOUND, SERVICE_NOT_FOUND, INVALID_INPUT (with the
// JSON pointer of the wrong value), TOOLS_UNAVAILABLE, SERVICE_UNAVAILABLE (no replica takes calls), TOOLS_BUSY (the
// tenant's own calls take all its places), OVERLOADED. The tool was started: TOOL_FAILED (its server refused or broke the
// protocol in answering), INVALID_OUTPUT (the answer does not fit the tool's schema, with the JSON pointer of the misfit, or
// may not be cut and is too long), TOOL_TIMEOUT, TOOL_CANCELLED, and TOOL_LOST or, of services, SERVICE_LOST, after which only a human can tell whether a tool that is not repeatable had
// its effect. The caller runs repeatable tools a second time, of services on another replica, before it reports a loss.
//
// When ctx ends, Call stops the tool: it returns TOOL_CANCELLED once that is confirmed, the result if the tool was faster,
// or TOOL_LOST without a confirmation. Services cannot be stopped: Call returns at once, and drops their later messages
// about the call.
type Caller interface {
	// List returns the tools on offer to the tenant, sorted by name. It omits tools of servers without a connection.
	List(ctx context.Context, tenant id.Tenant) ([]Tool, error)
	// Call runs a tool and returns its result.
	Call(ctx context.Context, call Call) (Result, error)
}

// Toolbox is a Caller that also knows the servers of tools. It is safe for concurrent use.
type Toolbox interface {
	Caller
	// CallWith is Call with a function that receives notifications, one at a time, in their order and before CallWith
	// returns. CallWith drops notifications that come faster than told handles them, and may lose some when the bus fails;
	// the call is not harmed. told may be nil.
	CallWith(ctx context.Context, call Call, told func(Notification)) (Result, error)
	// Servers returns the servers of a kind (all kinds if it is empty) that the tenant may see, sorted by kind and id,
	// connected or not.
	Servers(ctx context.Context, tenant id.Tenant, kind string) ([]Server, error)
	// ToolsOf returns a server and its tools, sorted by name. It finds a service by its id, or by its name if only one
	// service has it. Errors are *fault.Fault: MCP_SERVER_NOT_FOUND, SERVICE_NOT_FOUND, TOOLS_UNAVAILABLE.
	ToolsOf(ctx context.Context, tenant id.Tenant, kind, server string) (Server, []Tool, error)
}

// Order is a server's place in lists: by kind, then by id.
func (s Server) Order() string { return s.Kind + "\x00" + s.ID }

// BadKind returns the fault of a request for an unknown kind of servers.
func BadKind() error {
	return fault.Newf(fault.ToolBadInput, "kind must be %s or %s.", KindMCP, KindService).At("kind")
}
