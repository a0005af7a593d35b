package tools

import (
	"fmt"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Rules are the operator's settings for the tools of one server. The zero value is safe: people are asked before every
// call that may change something, and the server's word for what changes nothing does not count.
type Rules struct {
	Approval   string            // always, writes, never; empty = writes
	Approvals  map[string]string // the same of single tools, by the server's own names
	ReadOnly   []string          // tools that change nothing, by the server's own names
	Hints      bool              // the server's hints of what changes nothing count, too
	Untrusted  bool              // its output may hold instructions of strangers
	Agents     bool              // agents of the swarm may call by themselves what people would be asked about
	AgentsRead bool              // they may call what the server says changes nothing, unless people are asked about it always
	Exempt     []string          // tools to which approval never applies even after untrusted output
}

// Approvals are the settings of an approval.
var Approvals = []string{event.ApprovalAlways, event.ApprovalWrites, event.ApprovalNever}

// Check returns what is wrong with the rules. Errors begin with the option.
func (r Rules) Check() error {
	if r.Approval != "" && !slices.Contains(Approvals, r.Approval) {
		return fmt.Errorf("approval: %q is not one of always, writes, never", r.Approval)
	}
	for tool, a := range r.Approvals {
		if !slices.Contains(Approvals, a) {
			return fmt.Errorf("approvals: %q for %s is not one of always, writes, never", a, tool)
		}
	}
	return nil
}

// Policy returns the policy of a tool of the server. hint is the server's word that the tool changes nothing.
func (r Rules) Policy(own string, hint bool) event.ToolPolicy {
	p := event.ToolPolicy{
		Approval: r.Approval, Untrusted: r.Untrusted,
		Reads: slices.Contains(r.ReadOnly, own) || r.Hints && hint, Exempt: slices.Contains(r.Exempt, own),
	}
	if p.Approval == "" {
		p.Approval = event.ApprovalWrites
	}
	if a, ok := r.Approvals[own]; ok {
		p.Approval = a
	}
	return p
}
