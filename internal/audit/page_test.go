package audit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	auditlog "github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// TestPagesOfRecords: pages that follow each other have each selected record of the tenant once, the newest first.
func TestPagesOfRecords(t *testing.T) {
	c := bustest.Single(t)
	store, err := eventlog.New(c, eventlog.Options{})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	acme, err := id.ParseTenant("acme")
	require.NoError(t, err)
	none, err := auditlog.ReadPage(t.Context(), store, acme, auditlog.Query{}, 0, 10)
	require.NoError(t, err)
	require.Empty(t, none)
	w, err := auditlog.New(c, auditlog.Options{CloseMaxWait: time.Hour})
	require.NoError(t, err)
	const n = 450 // of each tenant: more than one read returns
	for k := range n {
		action, who := audit.Command, "ann"
		if k%3 == 0 {
			action = audit.API
		}
		if k%50 == 0 {
			who = "bob"
		}
		w.Record(action, acme, audit.Record{Principal: who, Entity: fmt.Sprint("s", k)})
		w.Record(action, id.DefaultTenant, audit.Record{Principal: who, Entity: fmt.Sprint("s", k)})
		w.Record(audit.AuthFailed, id.Tenant{}, audit.Record{})
	}
	w.Close()
	for name, one := range map[string]struct {
		q    auditlog.Query
		want int
	}{
		"all":    {auditlog.Query{}, n},
		"action": {auditlog.Query{Action: audit.API.String()}, n / 3},
		"who":    {auditlog.Query{Principal: "bob"}, n / 50},
		"what":   {auditlog.Query{Entity: "s0"}, 1},
		"both":   {auditlog.Query{Principal: "bob", Action: audit.API.String()}, 3},
		"no":     {auditlog.Query{Principal: "eve"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []auditlog.Stored
			for before, pages := uint64(0), 0; ; pages++ {
				p, err := auditlog.ReadPage(t.Context(), store, acme, one.q, before, 70)
				require.NoError(t, err)
				require.LessOrEqual(t, len(p.Records), 70)
				require.Less(t, pages, 10)
				seen = append(seen, p.Records...)
				if before = p.Next; before == 0 {
					break
				}
			}
			require.Len(t, seen, one.want)
			for k, r := range seen {
				require.Equal(t, "acme", r.Tenant)
				require.True(t, k == 0 || r.Sequence < seen[k-1].Sequence)
			}
		})
	}
}
