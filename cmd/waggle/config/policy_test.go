package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

func TestRulesOfTools(t *testing.T) {
	l, err := Load(Input{File: write(t, `
tools:
  servers:
  - {name: plain, command: [x]}
  - {name: web, command: [x], network: true, approval: never, approvals: {pay: always}, taint_exempt: [note]}
  - {name: far, url: "http://x", untrusted: false, read_only: [look], trust_hints: true}
  service_rules:
  - {service: weather, approval: never, untrusted: false}
`)})
	require.NoError(t, err)
	c := &l.Tools
	plain, web, far := c.RulesOf(&c.Servers[0]), c.RulesOf(&c.Servers[1]), c.RulesOf(&c.Servers[2])
	require.Equal(t, event.ToolPolicy{Approval: event.ApprovalWrites}, plain.Policy("a", true))
	require.Equal(t, event.ToolPolicy{Approval: event.ApprovalAlways, Untrusted: true}, web.Policy("pay", false))
	require.Equal(t, event.ToolPolicy{Approval: event.ApprovalNever, Untrusted: true, Exempt: true}, web.Policy("note", false))
	require.Equal(t, event.ToolPolicy{Approval: event.ApprovalWrites, Reads: true}, far.Policy("a", true))
	services := c.RulesOfServices()
	require.Equal(t, event.ToolPolicy{Approval: event.ApprovalNever}, services["weather"].Policy("a", false))
	require.Equal(t, event.ToolPolicy{Approval: event.ApprovalWrites, Untrusted: true}, services["*"].Policy("a", false))
	require.True(t, services["*"].Untrusted)
	c.Taint = false
	require.False(t, c.RulesOf(&c.Servers[1]).Untrusted || c.RulesOfServices()["*"].Untrusted)

	c.BuiltinApproval = "perhaps"
	c.Servers[0].Approval = "perhaps"
	c.ServiceRules = append(c.ServiceRules, ServiceRule{Service: "weather", Approvals: map[string]string{"a": "b"}})
	err = l.Validate(everything)
	for _, path := range []string{
		"tools.builtin_approval: ", "tools.servers[0]: approval: ", "tools.service_rules[1].service: ", "tools.service_rules[1]: approvals: ",
	} {
		require.ErrorContains(t, err, path)
	}
}
