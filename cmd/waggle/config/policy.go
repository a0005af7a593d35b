package config

import (
	"fmt"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/tools"
)

// RulesOf returns the operator's rules for the tools of an MCP server.
func (t *Tools) RulesOf(s *ToolServer) tools.Rules {
	return tools.Rules{
		Approval: s.Approval, Approvals: s.Approvals, Hints: s.TrustHints, Exempt: s.TaintExempt,
		Agents: given(s.Agents, false), AgentsRead: s.Agents == nil,
		Untrusted: t.Taint && given(s.Untrusted, s.URL != "" || s.Network),
	}
}

// RulesOfServices returns the rules for services of the swarm, by id or name.
func (t *Tools) RulesOfServices() map[string]tools.Rules {
	out := map[string]tools.Rules{anyService: {Untrusted: t.Taint, Agents: true}}
	for i := range t.ServiceRules {
		s := &t.ServiceRules[i]
		out[s.Service] = tools.Rules{
			Approval: s.Approval, Approvals: s.Approvals, ReadOnly: s.ReadOnly, Exempt: s.TaintExempt,
			Agents:    given(s.Agents, s.Approval != event.ApprovalAlways),
			Untrusted: t.Taint && given(s.Untrusted, true),
		}
	}
	return out
}

// anyService stands for all services without rules of their own.
const anyService = "*"

func given(v *bool, otherwise bool) bool {
	if v == nil {
		return otherwise
	}
	return *v
}

// policy validates who is asked about calls.
func (p *problems) policy(t *Tools) {
	check := func(path string, rules tools.Rules) {
		if err := rules.Check(); err != nil {
			p.add(path, "%s", err)
		}
	}
	if err := (tools.Rules{Approval: t.BuiltinApproval}).Check(); err != nil {
		p.add("tools.builtin_approval", "%q is not one of always, writes, never", t.BuiltinApproval)
	}
	for i := range t.Servers {
		check(fmt.Sprintf("tools.servers[%d]", i), t.RulesOf(&t.Servers[i]))
	}
	seen := map[string]bool{}
	for i, s := range t.ServiceRules {
		path := fmt.Sprintf("tools.service_rules[%d]", i)
		if s.Service == "" || seen[s.Service] {
			p.add(path+".service", "%q is empty or listed twice", s.Service)
		}
		seen[s.Service] = true
		check(path, tools.Rules{Approval: s.Approval, Approvals: s.Approvals})
	}
}
