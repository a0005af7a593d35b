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
		asks := func(tainted bool) bool { return event.PendingCall{Policy: &p, Tainted: tainted}.NeedsPerson() }
		set, single := r.Approvals[own]
		if !single {
			set = r.Approval
		}
		switch set {
		case event.ApprovalAlways:
			require.True(t, asks(tainted))
		case "", event.ApprovalWrites:
			require.Equal(t, !p.Reads, asks(tainted), "taint changes nothing where writers ask anyway")
		case event.ApprovalNever:
			require.False(t, asks(false))
			require.Equal(t, !p.Reads && !p.Exempt, asks(true))
		}
		require.True(t, !asks(false) || asks(true), "taint never loosens")
		if !r.Hints {
			require.Equal(t, r.Policy(own, false), r.Policy(own, true), "an untrusted hint means nothing")
		}
		require.Equal(t, r.Untrusted, p.Untrusted)
	})
}

func TestTheZeroPolicyAsks(t *testing.T) {
	p := tools.Rules{}.Policy("a", true)
	require.True(t, event.PendingCall{Policy: &p}.NeedsPerson())
	require.ErrorContains(t, tools.Rules{Approval: "sometimes"}.Check(), "approval")
	require.ErrorContains(t, tools.Rules{Approvals: map[string]string{"a": ""}}.Check(), "approvals")
}
