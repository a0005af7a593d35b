package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// TestQuotasInForceAndTheirUse: doctor shows every shipped limit, who uses how much of it, and warns before it is
// reached, in text and in JSON.
func TestQuotasInForceAndTheirUse(t *testing.T) {
	i := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, i.URL)
	shipped := quotas(t.Context(), patient(t, "", nil), c)[0]
	require.Equal(t, OK, shipped.Level)
	require.Contains(t, shipped.Is, "each principal: 2000 sessions, 2000 tasks, 200 teams, 20000000 tokens a day")
	require.Contains(t, shipped.Is, "each tenant: 10000 sessions, 10000 tasks, 1000 teams, 100000000 tokens a day, 10240 MiB of files, 1000 children of a task")
	require.Contains(t, shipped.Is, "each task: 16 levels of children")
	require.Empty(t, shipped.Uses)

	p := patient(t, "quota: {tenant: {sessions: -1}, principal: {sessions: 5, tasks: 0, teams: -1, tokens: -1}}\n", nil)
	require.Contains(t, limitsOf(p), "each principal: 5 sessions\n")
	var sessions quota.Entities
	require.NoError(t, sessions.Open(t.Context(), audit.Sessions, quota.Config{Conn: c, Policy: p.Config.Quota.Policy()}))
	t.Cleanup(sessions.Close)
	for n := range 4 {
		require.NoError(t, sessions.Hold(t.Context(), id.DefaultTenant, "ann", id.EntityFromExternal(fmt.Sprint(n))))
	}
	tight := quotas(t.Context(), p, c)[0]
	require.Equal(t, Warn, tight.Level)
	require.Contains(t, tight.Is, "ann of tenant default: 4 of 5 sessions (80 %)")
	require.Contains(t, tight.Do, "sessions of ann of tenant default")
	var out bytes.Buffer
	require.NoError(t, WriteJSON(&out, tight))
	var back Finding
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	require.Equal(t, tight, back)
	require.Equal(t, []quota.Use{{Tenant: "default", Principal: "ann", Resource: "sessions", Used: 4, Limit: 5}}, back.Uses)
}
