package auth

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestWhatRolesAllow: users and operators may act, a viewer may watch, and roles only add rights.
func TestWhatRolesAllow(t *testing.T) {
	for role, want := range map[Role]struct{ watch, act bool }{
		RoleUser: {true, true}, RoleOperator: {true, true}, RoleViewer: {true, false}, RoleAgent: {}, RoleService: {}, "": {},
	} {
		p := Principal{Roles: []Role{role}}
		require.Equal(t, want.watch, p.MayWatch(), role)
		require.Equal(t, want.act, p.MayAct(), role)
	}
	require.False(t, Principal{}.MayWatch())
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOf(rapid.SampledFrom(roles)).Draw(t, "some")
		p, more := Principal{Roles: some}, Principal{Roles: append(rapid.SliceOf(rapid.SampledFrom(roles)).Draw(t, "more"), some...)}
		require.True(t, !p.MayAct() || more.MayAct())
		require.True(t, !p.MayWatch() || more.MayWatch())
		require.True(t, !p.MayAct() || p.MayWatch(), "who may act may watch")
	})
}
