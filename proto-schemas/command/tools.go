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
