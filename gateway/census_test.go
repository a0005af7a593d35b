package gateway_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/directory"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// listed returns the connections that a gateway lists for a principal.
func (r *rig) listed(who, query string) (l wire.ConnectionList) {
	r.t.Helper()
	status, body, _ := r.get("/api/v1/connections"+query, bearer(who)...)
	require.Equal(r.t, http.StatusOK, status, body)
	require.NoError(r.t, json.Unmarshal([]byte(body), &l))
	return l
}

// beside starts another gateway of the installation, over a connection of its own.
func (r *rig) beside(opts ...option) *rig {
	r.t.Helper()
	other := &rig{t: r.t, conn: sharedBus(r.t), log: r.log, reg: prometheus.NewRegistry(), path: r.path, commands: r.commands, writers: r.writers}
	other.dir = openDirectory(r.t, other)
	other.srv = other.server(opts...)
	other.serve()
	return other
}

// An operator sees the connections of its tenant with all gateways, whichever answers, and which lag.
func TestAnOperatorListsTheConnectionsOfAllGateways(t *testing.T) {
	keys := authenticated(key("ada", "red", auth.RoleUser), key("boss", "red", auth.RoleOperator), key("rival", "blue", auth.RoleOperator))
	small := func(c *gateway.Config, _ *gateway.Deps) { c.QueueBytes = 16 << 10 }
	a := prepare(t, sharedBus(t))
	a.dir = openDirectory(t, a)
	a.srv = a.server(keys, small)
	a.serve()
	b := a.beside(keys, small)
	both := func(d *directory.Directory) bool { return len(d.Members(directory.WhatService, wirecmd.Gateways)) == 2 }
	for _, d := range []*directory.Directory{a.dir, b.dir} {
		ctx, cancel := context.WithTimeout(t.Context(), maxWait)
		defer cancel()
		require.NoError(t, d.Wait(ctx, both))
	}

	busy, idle := a.session("red"), a.session("red")
	stuck := a.dial("session="+busy.Entity.String()+"&after=0", bearer("ada")...) // reads nothing
	require.NoError(t, stuck.Conn.(*net.TCPConn).SetReadBuffer(16<<10))
	b.reads(streamOf(idle), bearer("boss")...)
	var slow wire.ConnectionList
	// More than the kernel may still take, or the viewer might catch up.
	eventually(t, "the gateway beside lists the connection, which lags by 300 events of 20 KiB", func() bool {
		a.answers(busy, slices.Repeat([]string{bulk}, 20)...)
		slow = b.listed("boss", "?lagging=true")
		return slow.Total == 1 && slow.Connections[0].Watches[0].Behind >= 300
	})
	require.Equal(t, b.conn.Instance(), slow.Gateway)
	require.Empty(t, slow.Missing)
	one := slow.Connections[0]
	require.Equal(t, "orbit who-ada red "+a.conn.Instance(), one.Protocol+" "+one.Principal+" "+one.Tenant+" "+one.Gateway)
	require.True(t, one.Lagging)
	require.Positive(t, one.Queued)
	require.NotEmpty(t, one.ID)
	require.Len(t, one.Watches, 1)
	w := one.Watches[0]
	require.Equal(t, "session/"+busy.Entity.String()+" queue_full", w.Log+" "+w.Reason)
	require.Positive(t, w.Behind)
	require.False(t, w.Lagging.IsZero())

	for _, r := range []*rig{a, b} {
		all := r.listed("boss", "")
		require.Equal(t, 2, all.Total)
		require.Equal(t, one.ID, all.Connections[0].ID, "what lags comes first")
		other := all.Connections[1]
		require.Equal(t, "events who-boss "+b.conn.Instance(), other.Protocol+" "+other.Principal+" "+other.Gateway)
		require.False(t, other.Lagging)
		require.Equal(t, "session/"+idle.Entity.String(), other.Watches[0].Log)
		few := r.listed("boss", "?limit=1")
		require.Equal(t, 2, few.Total)
		require.Len(t, few.Connections, 1)
		require.Equal(t, other.ID, r.listed("boss", "?gateway="+b.conn.Instance()).Connections[0].ID)
		require.Zero(t, r.listed("rival", "").Total, "another tenant")
	}
	for _, query := range []string{"?lagging=maybe", "?limit=0", "?limit=501", "?gateway=" + strings.Repeat("x", 65)} {
		status, body, _ := a.get("/api/v1/connections"+query, bearer("boss")...)
		require.Equal(t, http.StatusUnprocessableEntity, status, body)
	}
	status, body, _ := a.get("/api/v1/connections", bearer("ada")...)
	require.Equal(t, http.StatusForbidden, status, body)

	_, err := a.dir.Join(t.Context(), directory.Member{What: directory.WhatService, Name: wirecmd.Gateways, Instance: id.MustName("silent")})
	require.NoError(t, err)
	partial := a.listed("boss", "")
	require.Equal(t, []string{"silent"}, partial.Missing)
	require.Equal(t, 2, partial.Total, "the others are listed")
	b.srv.Stop()
	require.Equal(t, []string{"nobody"}, a.listed("boss", "?gateway=nobody").Missing)
}
