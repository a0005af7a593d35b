package quota_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
)

// TestTheUseOfLimits: a reader of the bus sees what tenants and principals use, without returned holdings and other
// days, and the most used limit first.
func TestTheUseOfLimits(t *testing.T) {
	i := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, i.URL)
	p := quota.Policy{
		Tenant: quota.Limits{Sessions: 5000, Tokens: 1000}, Principal: quota.Limits{Sessions: 2500},
		Tenants: map[string]quota.Override{"blue": {Tenant: quota.Limits{Sessions: quota.None}, Principal: quota.Limits{Sessions: quota.None}}},
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	none, err := quota.InUse(t.Context(), c, p, now)
	require.NoError(t, err)
	require.Empty(t, none)

	var sessions quota.Entities
	require.NoError(t, sessions.Open(t.Context(), audit.Sessions, quota.Config{Conn: c, Policy: p}))
	t.Cleanup(sessions.Close)
	red := tenant(t, "red")
	const held = 1250 // more than one batch
	for n := range held + 1 {
		require.NoError(t, sessions.Hold(t.Context(), red, "ann", entity(fmt.Sprint("s-", n))))
	}
	require.NoError(t, sessions.Free(t.Context(), red, entity("s-0")))
	require.NoError(t, sessions.Hold(t.Context(), tenant(t, "blue"), "bob", entity("s-b")))
	days, err := quota.OpenDaily(t.Context(), quota.Config{Conn: c, Policy: p, Now: clock})
	require.NoError(t, err)
	t.Cleanup(days.Close)
	require.NoError(t, days.Spend(t.Context(), quota.Payer{Tenant: red, Principal: "ann"}, 900, 0))

	got, err := quota.InUse(t.Context(), c, p, now)
	require.NoError(t, err)
	require.Equal(t, []quota.Use{
		{Tenant: "red", Resource: "tokens", Used: 900, Limit: 1000},
		{Tenant: "red", Principal: "ann", Resource: "sessions", Used: held, Limit: 2500},
		{Tenant: "red", Resource: "sessions", Used: held, Limit: 5000},
	}, got)
	mine, err := quota.InUseBy(t.Context(), c, p, red, "bob", false, now)
	require.NoError(t, err)
	require.Equal(t, []quota.Use{
		{Tenant: "red", Resource: "tokens", Used: 900, Limit: 1000},
		{Tenant: "red", Resource: "sessions", Used: held, Limit: 5000},
		{Tenant: "red", Principal: "bob", Resource: "sessions", Limit: 2500},
	}, mine)
	require.True(t, mine[0].Daily())
	require.False(t, mine[1].Daily())
	all, err := quota.InUseBy(t.Context(), c, p, red, "bob", true, now)
	require.NoError(t, err)
	require.ElementsMatch(t, append(got, mine[2]), all)
	free, err := quota.InUseBy(t.Context(), c, p, tenant(t, "blue"), "bob", true, now)
	require.NoError(t, err)
	require.Equal(t, []quota.Use{{Tenant: "blue", Resource: "tokens", Limit: 1000}}, free)
	tomorrow, err := quota.InUse(t.Context(), c, p, now.Add(24*time.Hour))
	require.NoError(t, err)
	require.Len(t, tomorrow, 2)
}
