package api

import "encoding/json"

// ToolSummary is one tool of a provider in a list.
type ToolSummary struct {
	Kind         string `json:"kind"`     // of the provider: mcp, service
	Provider     string `json:"provider"` // its id
	ProviderName string `json:"provider_name"`
	Status       string `json:"status"` // of the provider
	Name         string `json:"name"`   // the provider's name of the tool
	Title        string `json:"title,omitempty"`
	Description  string `json:"description,omitempty"`
	ReadOnly     bool   `json:"read_only"`  // changes nothing, by the word of the provider
	Idempotent   bool   `json:"idempotent"` // a repeated call has no further effect
	Approval     string `json:"approval"`   // of the operator's policy: always, writes, never
	Asks         bool   `json:"asks"`       // people are asked before a model may call it
	Untrusted    bool   `json:"untrusted"`  // its results may hold instructions of strangers
	Models       bool   `json:"models"`     // models are offered it
	Agents       bool   `json:"agents"`     // agents of the swarm may call it without a person
}

// LeftOutTool is a tool of an MCP server that is not on offer.
type LeftOutTool struct {
	Tool string `json:"tool"` // the server's name of it; empty if it has none
	Why  string `json:"why"`
}

// ToolServer is an MCP server that is down, or has tools that are not on offer.
type ToolServer struct {
	Kind     string        `json:"kind"`
	Provider string        `json:"provider"`          // its id
	Status   string        `json:"status"`            // active or inactive
	Trouble  string        `json:"trouble,omitempty"` // why it has no connection, without secrets; of a program it ends with its last words
	LeftOut  []LeftOutTool `json:"left_out,omitempty"`
}

// ToolPage is a page of the list of tools.
type ToolPage struct {
	Tools []ToolSummary `json:"tools"`
	// Servers are the MCP servers of the list that are down or have tools that are not on offer. The first page has them.
	Servers []ToolServer `json:"servers,omitempty"`
	Next    string       `json:"next"` // the parameter before of the next page; empty = no further tools
	More    bool         `json:"more"` // more tools follow
}

// ToolDetail is one tool with its schemas.
type ToolDetail struct {
	ToolSummary
	InputSchema  json.RawMessage `json:"input_schema"` // a JSON Schema of an object
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// IdempotentUnless names a boolean argument: calls without it are idempotent although the tool as a whole is not.
	IdempotentUnless string `json:"idempotent_unless,omitempty"`
}

// NewToolCall is a person's call of a tool.
type NewToolCall struct {
	ID        string          `json:"id,omitempty"`        // the client's id for it: a repeat has the same, and makes no second call
	Kind      string          `json:"kind"`                // of the provider: mcp, service
	Arguments json.RawMessage `json:"arguments,omitempty"` // an object; absent = an empty one
	TimeoutMS int64           `json:"timeout_ms,omitempty"`
}

// CallView is a call of a tool as it is now.
type CallView struct {
	CallID     string          `json:"call_id"` // its log is logs/call/{call_id}
	Kind       string          `json:"kind"`    // of the provider: mcp, service
	Provider   string          `json:"provider"`
	Tool       string          `json:"tool"`
	Status     string          `json:"status"` // queued, running, success, error, unknown (whether it had its effect is not known)
	Result     json.RawMessage `json:"result,omitempty"`
	Code       string          `json:"code,omitempty"` // of the error catalogue
	Error      string          `json:"error,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"` // of a failed service, in its own form: at least its code, if it has one
	DurationMS int64           `json:"duration_ms"`
}

// RetryTask is the optional body of a retry.
type RetryTask struct {
	ID string `json:"id,omitempty"` // the client's id for it: a repeat has the same and gets the same response
}
