package command

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Tools is the tool service, which runs tools for workers and agents.
var Tools = id.MustName("tools")

// OfferTools is the verb of the tool service for request and reply about the tools that models are offered.
var OfferTools = id.MustName("list") // ToolOfferRequest -> ToolOffer

// ToolOfferRequest asks for a page of the tools that the models of a tenant are offered.
type ToolOfferRequest struct {
	Tenant id.Tenant `json:"tenant"`
	After  string    `json:"after,omitempty"` // the name of the last tool of the previous page
}

// ToolOffer is a page of tools, in the order of their names.
type ToolOffer struct {
	Tools []OfferedTool `json:"tools"`
	More  bool          `json:"more,omitempty"` // further ones follow the last
}

// OfferedTool is a tool as models know it.
type OfferedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"` // a JSON Schema of an object
}

// Statuses of a call without an outcome.
const (
	CallQueued  = "queued"
	CallRunning = "running"
)

// ToolStart asks for one run of a tool outside of tasks, whose log shows the outcome.
type ToolStart struct {
	ToolRequest
	WaitMS int64 `json:"wait_ms,omitempty"` // how long to wait for the outcome
}

// OfferListRequest asks for a page of the tools of all providers, or of some.
type OfferListRequest struct {
	Tenant id.Tenant `json:"tenant"`
	Kind   string    `json:"kind,omitempty"`   // of providers; empty = all
	Server string    `json:"server,omitempty"` // id of a provider; empty = all
	Before string    `json:"before,omitempty"` // the member next of the previous page
	Limit  int       `json:"limit"`            // an answer has fewer tools if more do not fit into a message of the bus
}

// ReadOfferRequest asks for one tool of a provider.
type ReadOfferRequest struct {
	Tenant id.Tenant `json:"tenant"`
	ToolsOf
	Tool string `json:"tool"`
}
