package audit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	auditlog "github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func read(t *testing.T, c *bus.Conn, q auditlog.Query) (out []audit.Record) {
	t.Helper()
	require.NoError(t, auditlog.Read(t.Context(), c, q, func(r audit.Record) error {
		out = append(out, r)
		return nil
	}))
	return out
}

func TestRecordsAreFoundByWhoWhatAndWhen(t *testing.T) {
	c := bustest.Single(t)
	acme, err := id.ParseTenant("acme")
	require.NoError(t, err)
	at := time.Now()
	w, err := auditlog.New(c, auditlog.Options{CloseMaxWait: time.Hour, Now: func() time.Time { return at }})
	require.NoError(t, err)
	w.Record(audit.AuthFailed, id.Tenant{}, audit.Record{Outcome: audit.Denied, Code: "UNAUTHENTICATED"})
	w.Record(audit.Command, acme, audit.Record{Principal: "ann", Verb: "message", Entity: "s1"})
	w.Record(audit.Command, acme, audit.Record{Principal: "bob", Verb: "cancel", Entity: "s1"})
	w.Record(audit.Decided, id.DefaultTenant, audit.Record{Principal: "eve", Outcome: audit.Reject, Entity: "s9"})
	w.Close()
	w.Close()
	all := read(t, c, auditlog.Query{})
	require.Len(t, all, 4)
	require.Empty(t, all[0].Tenant)
	require.Equal(t, audit.Done, all[1].Outcome)
	require.NotEqual(t, all[0].ID, all[1].ID)
	require.Len(t, read(t, c, auditlog.Query{Tenant: acme}), 2)
	require.Equal(t, "cancel", read(t, c, auditlog.Query{Principal: "bob"})[0].Verb)
	require.Len(t, read(t, c, auditlog.Query{Entity: "s1", Action: audit.Command.String()}), 2)
	require.Len(t, read(t, c, auditlog.Query{Since: at}), 4)
	require.Empty(t, read(t, c, auditlog.Query{Since: at.Add(time.Hour)}))
	require.Empty(t, read(t, c, auditlog.Query{Until: at.Add(-time.Hour)}))

	late, cancel := context.WithCancel(t.Context())
	seen := 0
	require.NoError(t, auditlog.Read(late, c, auditlog.Query{Follow: true}, func(audit.Record) error {
		if seen++; seen == 4 {
			cancel()
		}
		return nil
	}), "following ends with its context")
	enough := errors.New("enough")
	require.ErrorIs(t, auditlog.Read(t.Context(), c, auditlog.Query{}, func(audit.Record) error { return enough }), enough)
}

func TestWhatFindsNoRoomIsCountedAndSaid(t *testing.T) {
	i := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, i.URL)
	reg := prometheus.NewRegistry()
	w, err := auditlog.New(c, auditlog.Options{Waiting: 4, Registry: reg})
	require.NoError(t, err)
	i.Stop()
	const n = 400 // more than fit into the queue and the open requests
	for k := range n {
		w.Record(audit.Command, id.DefaultTenant, audit.Record{Entity: fmt.Sprint(k)})
	}
	i.Start()
	bustest.Up(t, c)
	w.Record(audit.Closed, id.DefaultTenant, audit.Record{})
	lost := 0.0
	require.Eventually(t, func() bool {
		m, err := reg.Gather()
		require.NoError(t, err)
		stored := 0.0
		lost = 0
		for _, f := range m {
			for _, s := range f.GetMetric() {
				switch f.GetName() {
				case "waggle_audit_records_total":
					stored += s.GetCounter().GetValue()
				case "waggle_audit_lost_total":
					lost += s.GetCounter().GetValue()
				}
			}
		}
		return stored > 0 && lost > 0
	}, bustest.MaxWait, 10*time.Millisecond)
	w.Close()
	require.Positive(t, lost)
	said, stored := int64(0), 0
	for _, r := range read(t, c, auditlog.Query{}) {
		if r.Action == audit.Lost.String() {
			said += r.Count
		} else {
			stored++
		}
	}
	require.Positive(t, said, "the log says that records are missing")
	require.LessOrEqual(t, int64(stored)+said, int64(n+1))
}

func TestAddressesAreWrittenAsConfigured(t *testing.T) {
	c := bustest.Single(t)
	remote := func(mode, key, addr string) string {
		w, err := auditlog.New(c, auditlog.Options{CloseMaxWait: time.Hour, Remote: mode, RemoteKey: []byte(key)})
		require.NoError(t, err)
		defer w.Close()
		return w.Remote(addr)
	}
	require.Equal(t, "192.0.2.1", remote(auditlog.RemotePlain, "", "192.0.2.1:4711"))
	require.Empty(t, remote(auditlog.RemoteNone, "", "192.0.2.1:4711"))
	a := remote(auditlog.RemoteHash, "k", "192.0.2.1:4711")
	require.Equal(t, a, remote("", "k", "192.0.2.1:1"), "of all processes with the key, whatever the port")
	require.NotEqual(t, a, remote("", "other", "192.0.2.1:4711"))
	require.NotContains(t, a, "192")
	var none *auditlog.Writer
	none.Record(audit.Command, id.DefaultTenant, audit.Record{})
	require.Empty(t, none.Remote("192.0.2.1:1"))
	none.Close()
}
