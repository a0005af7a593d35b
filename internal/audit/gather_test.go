package audit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	auditlog "github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// A flood of failed logins, while the bus is away and while it is there, pushes no other record out of a small queue.
func TestAFloodOfFailuresLosesNoOtherRecord(t *testing.T) {
	i := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, i.URL)
	w, err := auditlog.New(c, auditlog.Options{CloseMaxWait: time.Hour, Waiting: 200})
	require.NoError(t, err)
	g := auditlog.NewGatherer(w)
	const addresses, each = 1000, 50
	flood := func() {
		for n := range addresses * each {
			g.Record(audit.AuthFailed, id.Tenant{}, audit.Record{
				Outcome: audit.Denied, Code: string(fault.Unauthenticated), Remote: fmt.Sprint("a", n%addresses),
			})
		}
	}
	i.Stop()
	bustest.Down(t, c)
	flood()
	const others = 100
	for n := range others {
		w.Record(audit.Command, id.DefaultTenant, audit.Record{Entity: fmt.Sprint(n)})
		if n%50 == 0 {
			flood()
		}
	}
	i.Start()
	reader := bustest.Dial(t, i.URL)
	require.Eventually(t, func() bool {
		return len(read(t, reader, auditlog.Query{Action: audit.Command.String()})) == others
	}, bustest.MaxWait, 50*time.Millisecond)
	g.Close()
	w.Close()
	var failures int64
	remotes := 0
	for _, r := range read(t, reader, auditlog.Query{Action: audit.AuthFailed.String()}) {
		failures += r.Count
		if r.Remote != "" {
			remotes++
		}
	}
	require.Len(t, read(t, reader, auditlog.Query{Action: audit.Command.String()}), others)
	require.LessOrEqual(t, remotes, 3*256, "records of addresses")
	require.LessOrEqual(t, failures, int64(3*addresses*each))
}

// Every failure counts, and those of an address within a second share a record.
func TestFailuresShareARecord(t *testing.T) {
	c := bustest.Single(t)
	w, err := auditlog.New(c, auditlog.Options{CloseMaxWait: time.Hour})
	require.NoError(t, err)
	t.Cleanup(w.Close)
	g := auditlog.NewGatherer(w)
	began := time.Now()
	const addresses, each = 3, 5000
	for n := range addresses * each {
		g.Record(audit.AuthFailed, id.Tenant{}, audit.Record{
			Outcome: audit.Denied, Code: string(fault.Unauthenticated), Remote: fmt.Sprint("a", n%addresses), Dialect: "orbit",
		})
	}
	counts := map[string]int64{}
	records := 0
	require.Eventually(t, func() bool {
		clear(counts)
		all := read(t, c, auditlog.Query{Action: audit.AuthFailed.String()})
		for _, r := range all {
			counts[r.Remote] += r.Count
			require.Equal(t, "orbit", r.Dialect)
		}
		records = len(all)
		return counts["a0"] == each && counts["a1"] == each && counts["a2"] == each
	}, time.Minute, 20*time.Millisecond)
	require.LessOrEqual(t, records, addresses*(1+int(time.Since(began)/time.Second)))
	g.Close()
	g.Close()

	var none *auditlog.Gatherer
	none.Record(audit.AuthFailed, id.Tenant{}, audit.Record{})
	none.Close()
}
