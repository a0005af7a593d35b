package event

// Settings of a tool's approval: the calls that people are asked about.
const (
	ApprovalAlways = "always" // every call
	ApprovalWrites = "writes" // calls of tools that may change something
	ApprovalNever  = "never"  // none, unless the run has read untrusted output
)

// ToolPolicy is the operator's decision on a tool, as the tool service knew it when a model was offered the tool.
type ToolPolicy struct {
	Approval  string `json:"approval"`            // always, writes, never
	Reads     bool   `json:"reads,omitempty"`     // the operator trusts that the tool changes nothing
	Untrusted bool   `json:"untrusted,omitempty"` // its output may hold instructions of strangers
	Exempt    bool   `json:"exempt,omitempty"`    // approval never holds even after untrusted output
}

// Asks reports whether people are asked before a call. tainted tells that the caller has read untrusted output. An
// unknown setting asks.
func (p ToolPolicy) Asks(tainted bool) bool {
	switch p.Approval {
	case ApprovalNever:
		return tainted && !p.Reads && !p.Exempt
	case ApprovalWrites:
		return !p.Reads
	}
	return true
}
