package tools_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/tools"
)

// TestAnyPolicy: no hint, name or taint loosens what the operator has set.
func TestAnyPolicy(t *testing.T) {
	names := []string{"a", "b", "c"}
	some := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string])
	setting := rapid.SampledFrom(append([]string{""}, tools.Approvals...))
	rapid.Check(t, func(t *rapid.T) {
		r := tools.Rules{
			Approval: setting.Draw(t, "approval"), ReadOnly: some.Draw(t, "read only"), Exempt: some.Draw(t, "exempt"),
			Approvals: rapid.MapOf(rapid.SampledFrom(names), rapid.SampledFrom(tools.Approvals)).Draw(t, "approvals"),
			Hints:     rapid.Bool().Draw(t, "hints"), Untrusted: rapid.Bool().Draw(t, "untrusted"),
		}
		require.NoError(t, r.Check())
		own, hint, tainted := rapid.SampledFrom(names).Draw(t, "tool"), rapid.Bool().Draw(t, "hint"), rapid.Bool().Draw(t, "tainted")
		p := r.Policy(own, hint)
		set, single := r.Approvals[own]
		if !single {
			set = r.Approval
		}
		switch set {
		case event.ApprovalAlways:
			require.True(t, p.Asks(tainted))
		case "", event.ApprovalWrites:
			require.Equal(t, !p.Reads, p.Asks(tainted), "taint changes nothing where writers ask anyway")
		case event.ApprovalNever:
			require.False(t, p.Asks(false))
			require.Equal(t, !p.Reads && !p.Exempt, p.Asks(true))
		}
		require.True(t, !p.Asks(false) || p.Asks(true), "taint never loosens")
		if !r.Hints {
			require.Equal(t, r.Policy(own, false), r.Policy(own, true), "an untrusted hint means nothing")
		}
		require.Equal(t, r.Untrusted, p.Untrusted)
	})
}

func TestTheZeroPolicyAsks(t *testing.T) {
	require.True(t, event.ToolPolicy{}.Asks(false))
	require.True(t, event.ToolPolicy{Approval: "sometimes", Reads: true}.Asks(false))
	require.True(t, tools.Rules{}.Policy("a", true).Asks(false))
	require.ErrorContains(t, tools.Rules{Approval: "sometimes"}.Check(), "approval")
	require.ErrorContains(t, tools.Rules{Approvals: map[string]string{"a": ""}}.Check(), "approvals")
}
