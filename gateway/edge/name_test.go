package edge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/sight"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func tenant(t *testing.T, name string) id.Tenant {
	t.Helper()
	of, err := id.ParseTenant(name)
	require.NoError(t, err)
	return of
}

// TestNamesOfSessions: a name is awaited for a day, and only for the principal that named the session
// and for those of its tenant who see all. Only the first may open it.
func TestNamesOfSessions(t *testing.T) {
	now := time.Now()
	e := &edge.Edge{Clock: func() time.Time { return now }, Sight: &sight.Sight{}}
	ann := auth.Principal{Subject: "ann", Tenant: tenant(t, "red"), Roles: []auth.Role{auth.RoleUser}}
	bob, boss, blue := ann, ann, ann
	bob.Subject, boss.Subject, blue.Tenant = "bob", "boss", tenant(t, "blue")
	boss.Roles = []auth.Role{auth.RoleOperator}
	log := func(p auth.Principal, name string) subject.Log {
		return subject.Log{Tenant: p.Tenant, Kind: id.KindSession, Entity: id.EntityFromExternal(name)}
	}
	refused := func(p auth.Principal, l subject.Log) {
		t.Helper()
		_, ok := e.Awaited(p, l)
		require.False(t, ok)
	}
	for _, p := range []event.Preferences{
		{}, {ConfirmPlan: new(false)}, {ConfirmPlan: new(true), OnBusy: event.OnBusyReject}, {OnBusy: event.OnBusyInterrupt, Language: "zh_CN"},
	} {
		name, err := edge.NameSession(ann, p)
		require.NoError(t, err)
		got, ok := e.Awaited(ann, log(ann, name.String()))
		require.True(t, ok)
		require.Equal(t, p, got.Preferences())
		refused(bob, log(bob, name.String()))
		refused(blue, log(blue, name.String()))
		refused(ann, subject.Log{Tenant: ann.Tenant, Kind: id.KindTask, Entity: name})
		got, ok = e.Awaited(boss, log(boss, name.String()))
		require.True(t, ok)
		require.ErrorIs(t, got.MayOpen(), fault.New(fault.Forbidden))
		for _, other := range []string{name.String() + "x", name.String() + "-pyy", strings.ToUpper(name.String()), name.String()[1:], "nobody", edge.NewID()} {
			refused(ann, log(ann, other))
		}
		for _, away := range []time.Duration{24*time.Hour + time.Minute, -61 * time.Minute} {
			e.Clock = func() time.Time { return now.Add(away) }
			refused(ann, log(ann, name.String()))
		}
		e.Clock = func() time.Time { return now.Add(-20 * time.Minute) } // of a gateway that is behind, beside one that is ahead
		_, ok = e.Awaited(ann, log(ann, name.String()))
		require.True(t, ok)
		e.Clock = func() time.Time { return now }
	}
	awkward, err := edge.NameSession(ann, event.Preferences{Language: strings.Repeat("é", 100)})
	require.NoError(t, err)
	require.Len(t, awkward.String(), 36)
	regional, err := edge.NameSession(ann, event.Preferences{Language: "en-GB"})
	require.NoError(t, err)
	got, ok := e.Awaited(ann, log(ann, regional.String()))
	require.True(t, ok)
	require.Equal(t, "en_GB", got.Preferences().Language)
}
