package gateway_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	auditlog "github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// bounded is a gateway with quotas and an audit log.
func bounded(t *testing.T, c *bus.Conn, p quota.Policy) *rig {
	t.Helper()
	w, err := auditlog.New(c, auditlog.Options{CloseMaxWait: time.Hour, Remote: auditlog.RemoteHash})
	require.NoError(t, err)
	q, err := quota.OpenConnections(t.Context(), quota.Config{Conn: c, Policy: p, Refused: func(r quota.Refusal) {
		w.Record(audit.QuotaRefused, r.Tenant, audit.Record{Principal: r.Principal, Resource: r.Resource.String(), Scope: r.Scope, Limit: float64(r.Limit)})
	}})
	require.NoError(t, err)
	t.Cleanup(w.Close)
	t.Cleanup(q.Close)
	return startOn(t, c, authenticated(key("alice", "red"), key("bob", "red")), func(_ *gateway.Config, d *gateway.Deps) {
		d.Quota, d.Audit = q, w
	})
}

func TestQuotasHoldOverTwoGateways(t *testing.T) {
	t.Parallel()
	i := bustest.Start(t, bus.DefaultTopology())
	p := quota.Policy{Tenant: quota.Limits{Connections: 3}, Principal: quota.Limits{Connections: 2}}
	one, two := bounded(t, bustest.Dial(t, i.URL), p), bounded(t, bustest.Dial(t, i.URL), p)
	two.mute = true // the sessions of both are made by the first
	a := one.dial("", bearer("alice")...)
	session := a.ready()
	a.write(message("hello"))
	two.dial("", bearer("alice")...)
	_, status, body := two.handshake("", bearer("alice")...)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Contains(t, body, "quota.principal.connections")
	// The claim of the refused socket counts at the other gateway until it is seen there
	// that it was taken back.
	require.Eventually(t, func() bool {
		_, status, _ := one.handshake("", bearer("bob")...)
		return status == http.StatusSwitchingProtocols
	}, maxWait, 10*time.Millisecond)
	_, status, body = two.handshake("", bearer("bob")...)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Contains(t, body, "Your tenant has used up the quota of 3 connections at once")
	_, status, _ = two.handshake("", bearer("a-wrong-secret")...)
	require.Equal(t, http.StatusUnauthorized, status)
	a.leave()
	require.Eventually(t, func() bool {
		_, status, _ := two.handshake("", bearer("bob")...)
		return status == http.StatusSwitchingProtocols
	}, maxWait, 10*time.Millisecond, "who leaves makes room, on the other gateway too")

	var text []byte
	seen := map[string]int{}
	reader := bustest.Dial(t, i.URL)
	require.Eventually(t, func() bool {
		clear(seen)
		text = nil
		require.NoError(t, auditlog.Read(t.Context(), reader, auditlog.Query{}, func(r audit.Record) error {
			seen[r.Action+" "+r.Code] += max(int(r.Count), 1)
			if r.Action == audit.Command.String() && r.Entity == session {
				seen["open "+r.Verb+" "+r.Principal+" "+r.Tenant]++
			}
			b, err := json.Marshal(r)
			text = append(text, b...)
			return err
		}))
		return seen["connection-closed "] > 0 && seen["connection-accepted "] >= 4 && seen["connection-refused "+string(fault.QuotaExceeded)] >= 2 &&
			seen["authentication-failed "+string(fault.Unauthenticated)] == 1
	}, maxWait, 20*time.Millisecond)
	require.Equal(t, 1, seen["open open who-alice red"])
	require.GreaterOrEqual(t, seen["quota-refused "], 2)
	require.NotContains(t, string(text), "a-wrong-secret")
	require.NotContains(t, string(text), "127.0.0.1", "addresses are hashed")
}

func TestMessagesOverTheQuotaAreRefused(t *testing.T) {
	t.Parallel()
	i := bustest.Start(t, bus.DefaultTopology())
	r := bounded(t, bustest.Dial(t, i.URL), quota.Policy{Tenants: map[string]quota.Override{"red": {Tenant: quota.Limits{Messages: 1}}}})
	c := r.dial("", bearer("alice")...)
	c.ready()
	for range 4 {
		c.write(message("hello"))
	}
	c.refused(string(fault.QuotaExceeded))
}
