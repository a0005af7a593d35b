package access_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

var tenant = id.DefaultTenant

// TestWhoSeesAndAnswers is the matrix of settings. ann owns the session, ben asked, cleo shares a group with ann, and dan
// shares none.
func TestWhoSeesAndAnswers(t *testing.T) {
	groups := [][]string{{"ann", "cleo"}, {"ben", "dan"}}
	for name, c := range map[string]struct {
		settings     access.Settings
		sees, answer string
	}{
		"default":         {access.Settings{}, "ann", "ann"},
		"owner":           {access.Settings{See: access.Owner, Answer: access.Owner}, "ann", "ann"},
		"team and asker":  {access.Settings{See: access.Group, Answer: access.Asker, Groups: groups}, "ann cleo", "ben"},
		"team of nothing": {access.Settings{See: access.Group}, "ann", "ann"},
		"tenant":          {access.Settings{See: access.Tenant, Answer: access.Tenant}, "ann ben cleo dan", "ann ben cleo dan"},
		"unknown":         {access.Settings{See: "all", Answer: "all"}, "ann", "ann"},
	} {
		p := access.Policy{Tenants: map[string]access.Settings{tenant.String(): c.settings}}
		for _, who := range []string{"", "ann", "ben", "cleo", "dan"} {
			person := access.Person{Subject: who}
			all := c.settings.See == access.Tenant // it takes no name to be of the tenant
			require.Equal(t, all || slices.Contains(strings.Fields(c.sees), who), p.MaySee(tenant, "ann", person), "%s: %s sees", name, who)
			require.Equal(t, all || slices.Contains(strings.Fields(c.answer), who), p.MayAnswer(tenant, "ann", "ben", person), "%s: %s answers", name, who)
		}
	}
}

// TestAnyAccess: the owner and operators always may, viewers see and do not answer, and the settings of one tenant do not
// reach another.
func TestAnyAccess(t *testing.T) {
	names := rapid.SampledFrom([]string{"ann", "ben", "cleo"})
	settings := rapid.Custom(func(t *rapid.T) access.Settings {
		return access.Settings{
			See:    rapid.SampledFrom([]string{"", "owner", "team", "tenant", "x"}).Draw(t, "see"),
			Answer: rapid.SampledFrom([]string{"", "asker", "owner", "tenant", "x"}).Draw(t, "answer"),
			Groups: rapid.SliceOf(rapid.SliceOf(names)).Draw(t, "groups"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		p := access.Policy{Tenants: map[string]access.Settings{tenant.String(): settings.Draw(t, "settings")}}
		owner, asker, who := names.Draw(t, "owner"), names.Draw(t, "asker"), names.Draw(t, "who")
		require.True(t, p.MaySee(tenant, owner, access.Person{Subject: owner}))
		require.True(t, p.MaySee(tenant, owner, access.Person{Subject: who, Operator: true}))
		require.True(t, p.MaySee(tenant, owner, access.Person{Subject: who, Viewer: true}))
		require.True(t, p.MayAnswer(tenant, owner, asker, access.Person{Subject: who, Operator: true}))
		require.Equal(t, p.MayAnswer(tenant, owner, asker, access.Person{Subject: who}),
			p.MayAnswer(tenant, owner, asker, access.Person{Subject: who, Viewer: true}))
		foreign := other(t)
		require.Equal(t, owner == who, p.MaySee(foreign, owner, access.Person{Subject: who}))
		require.Equal(t, owner == who, p.MayAnswer(foreign, owner, asker, access.Person{Subject: who}))
	})
}

func TestModelsOfATenant(t *testing.T) {
	p := access.Policy{Tenants: map[string]access.Settings{tenant.String(): {Models: []string{"demo"}}}}
	require.True(t, p.MayUse(tenant, "demo"))
	require.False(t, p.MayUse(tenant, "openai:x"))
	require.True(t, p.MayUse(other(t), "openai:x"))
}

func other(t require.TestingT) id.Tenant {
	one, err := id.ParseTenant("other")
	require.NoError(t, err)
	return one
}
