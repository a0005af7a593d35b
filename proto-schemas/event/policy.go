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

// PendingCall describes a tool call before it runs, as far as the decision whether a person has to allow it depends on it.
type PendingCall struct {
	Policy     *ToolPolicy // of the operator; nil: the tool was not on offer
	Tainted    bool        // the caller has read untrusted output
	Invalid    bool        // the call cannot run
	Client     bool        // the client of the run carries it out
	TeamTool   bool        // a member of a team uses a tool of the team
	Supervised bool        // a member of a team whose definition has people allow each call
	Recorded   bool        // the log of the caller says that people have to allow it
	Delegated  bool        // an agent calls a tool that the operator has opened to agents
}

// NeedsPerson reports whether a person has to allow the call, or the client to carry it out. It is the only place that decides
// this: the log of a conversation records its answer when the model asks for the call, and the tool service asks again before
// the call runs. A member's definition can be stricter than the operator's policy, never looser.
func (c PendingCall) NeedsPerson() bool {
	switch {
	case c.Invalid, c.Delegated:
		return false
	case c.Client && c.Policy == nil:
		return true
	case c.TeamTool:
		return false
	case c.Recorded, c.Supervised:
		return true
	}
	return c.Policy != nil && c.Policy.asks(c.Tainted)
}

// asks reports whether the operator wants people to be asked. An unknown setting asks.
func (p ToolPolicy) asks(tainted bool) bool {
	switch p.Approval {
	case ApprovalNever:
		return tainted && !p.Reads && !p.Exempt
	case ApprovalWrites:
		return !p.Reads
	}
	return true
}
