package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/audit"
	record "github.com/waggle-dev/waggle/proto-schemas/audit"
)

func TestAuditIsAskedForByTimesAndPrinted(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := auditCmd{Tenant: "acme", Since: "24h", Until: "2026-03-01T11:00:00Z"}
	q, err := c.query(now)
	require.NoError(t, err)
	require.Equal(t, now.Add(-24*time.Hour), q.Since)
	require.Equal(t, now.Add(-time.Hour), q.Until)
	for _, bad := range []auditCmd{{Tenant: "a.b"}, {Since: "yesterday"}, {Until: "x"}} {
		_, err := bad.query(now)
		require.Error(t, err)
	}
	var b strings.Builder
	r := record.Record{Time: now, Action: "command", Outcome: "done", Tenant: "acme", Principal: "ann\x1b[31m", Verb: "cancel", Entity: "s1", Limit: 3}
	require.NoError(t, c.print(&b, r))
	require.Equal(t, "2026-03-01T12:00:00Z  command                done    acme/ann  verb=cancel  entity=s1  limit=3\n", b.String())
	b.Reset()
	c.JSON = true
	require.NoError(t, c.print(&b, record.Record{Action: "export"}))
	require.Contains(t, b.String(), `"action":"export"`)
}

func TestAReportWithFaultsIsAnError(t *testing.T) {
	var b strings.Builder
	whole := audit.Report{Records: 3, Chains: 1, First: 1, Last: 3}
	require.NoError(t, printReport(&b, whole))
	require.Equal(t, "3 records, 1 to 3, in 1 chains; 0 of earlier versions without a chain; 0 lost, as their writers report\n", b.String())
	b.Reset()
	whole.First, whole.Begun, whole.Oldest = 2, []string{"chain X begins with number 2"}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	require.NoError(t, printReport(&b, whole))
	require.Contains(t, b.String(), "expired  chain X begins with number 2\n")
	require.Contains(t, b.String(), "the records before 2026-03-01T12:00:00Z have expired\n")
	whole.Faults = []audit.Fault{{Record: 2, Text: "records 2 to 2 are missing"}}
	require.ErrorContains(t, printReport(&b, whole), "the audit log is damaged: 1 faults")
	require.Contains(t, b.String(), "FAULT  records 2 to 2 are missing\n")
}
