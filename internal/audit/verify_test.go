package audit_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	auditlog "github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// fill writes records with some writers at once.
func fill(t *testing.T, c *bus.Conn, writers, records int) {
	t.Helper()
	var all sync.WaitGroup
	for range writers {
		w, err := auditlog.New(c, auditlog.Options{CloseMaxWait: time.Hour})
		require.NoError(t, err)
		all.Go(func() {
			for n := range records {
				w.Record(audit.Command, id.DefaultTenant, audit.Record{Entity: fmt.Sprint(n)})
			}
			w.Close()
		})
	}
	all.Wait()
}

// verify checks the log at once and in parts, whose state is stored between them: both find the same.
func verify(t *testing.T, c *bus.Conn) auditlog.Report {
	t.Helper()
	r, err := auditlog.Verify(t.Context(), c)
	require.NoError(t, err)
	state := []byte(`{}`)
	for {
		var part auditlog.Check
		require.NoError(t, json.Unmarshal(state, &part))
		done, err := part.Continue(t.Context(), c, 7)
		require.NoError(t, err)
		if done {
			require.Equal(t, fmt.Sprint(r), fmt.Sprint(part.Report))
			return r
		}
		state, err = json.Marshal(part)
		require.NoError(t, err)
	}
}

func faults(r auditlog.Report) string { return fmt.Sprint(r.Faults) }

func TestChainsOfConcurrentWritersAreWhole(t *testing.T) {
	c := bustest.Single(t)
	fill(t, c, 5, 300)
	fill(t, c, 2, 10) // after a restart
	r := verify(t, c)
	require.Empty(t, r.Faults)
	require.Equal(t, 1520, r.Records)
	require.Equal(t, 7, r.Chains)
}

// A writer outlives an outage: overtaken and lost records leave no unexplained gap.
func TestChainsOutliveAnOutage(t *testing.T) {
	i := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, i.URL)
	w, err := auditlog.New(c, auditlog.Options{CloseMaxWait: time.Hour})
	require.NoError(t, err)
	for n := range 400 {
		if n == 100 {
			i.Stop()
		}
		w.Record(audit.Command, id.DefaultTenant, audit.Record{Entity: fmt.Sprint(n)})
	}
	i.Start()
	bustest.Up(t, c)
	w.Record(audit.Command, id.DefaultTenant, audit.Record{Entity: "last"})
	w.Close()
	r := verify(t, c)
	require.Empty(t, r.Faults)
	require.Equal(t, 1, r.Chains)
}

// rebuild stores the log again, as the owner of the disks could, with changes.
func rebuild(t *testing.T, c *bus.Conn, change func([]*jetstream.RawStreamMsg) []*jetstream.RawStreamMsg) {
	t.Helper()
	s, err := c.JS().Stream(t.Context(), subject.StreamAudit)
	require.NoError(t, err)
	var all []*jetstream.RawStreamMsg
	for seq := s.CachedInfo().State.FirstSeq; seq <= s.CachedInfo().State.LastSeq; seq++ {
		m, err := s.GetMsg(t.Context(), seq)
		require.NoError(t, err)
		all = append(all, m)
	}
	require.NoError(t, c.JS().DeleteStream(t.Context(), subject.StreamAudit))
	bustest.Bootstrap(t, c, bus.DefaultTopology())
	for _, m := range change(all) {
		_, err := c.JS().Publish(t.Context(), m.Subject, m.Data)
		require.NoError(t, err)
	}
}

func TestWhatIsNotWholeIsNamed(t *testing.T) {
	type log = []*jetstream.RawStreamMsg
	for name, c := range map[string]struct {
		change func(log) log
		says   string
	}{
		"changed": {func(l log) log {
			l[4].Data = []byte(strings.Replace(string(l[4].Data), `"entity":"4"`, `"entity":"x"`, 1))
			return l
		}, "record 5, number 5 of chain"},
		"removed":       {func(l log) log { return append(l[:4:4], l[5:]...) }, "number 5 of chain"},
		"first removed": {func(l log) log { return l[1:] }, "number 1 of chain"},
		"swapped":       {func(l log) log { l[4].Subject = "audit.other.command"; return l }, "record 5 was changed: it is stored as audit.other.command"},
		"repeated":      {func(l log) log { return append(l, l[4]) }, "record 11 repeats number 5"},
		"without chain": {func(l log) log {
			data, _ := json.Marshal(audit.Record{Action: "command", Tenant: "default"})
			return append(l, &jetstream.RawStreamMsg{Subject: "audit.default.command", Data: data})
		}, "record 11 belongs to no chain"},
		"unreadable": {func(l log) log { l[4].Data = []byte("{"); return l }, "record 5 is not readable"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := bustest.Single(t)
			fill(t, conn, 1, 10)
			require.Empty(t, verify(t, conn).Faults)
			rebuild(t, conn, c.change)
			require.Contains(t, faults(verify(t, conn)), c.says)
		})
	}
}

// A number far away costs no time: the gap before it is one fault.
func TestAGapIsOneFault(t *testing.T) {
	c := bustest.Single(t)
	fill(t, c, 1, 3)
	rebuild(t, c, func(l []*jetstream.RawStreamMsg) []*jetstream.RawStreamMsg {
		l[2].Data = []byte(strings.Replace(string(l[2].Data), `"number":3`, `"number":9000000000000000003`, 1))
		return l
	})
	require.Contains(t, faults(verify(t, c)), "numbers 3 to 9000000000000000002 of chain")
}

// Records that expire while the log is checked in parts are not missing.
func TestRecordsExpireDuringACheck(t *testing.T) {
	c := bustest.Single(t)
	fill(t, c, 1, 20)
	fill(t, c, 1, 280) // the chain whose beginning expires before it is read
	var check auditlog.Check
	done, err := check.Continue(t.Context(), c, 20)
	require.NoError(t, err)
	require.False(t, done)
	top := bus.DefaultTopology()
	s, err := c.JS().Stream(t.Context(), subject.StreamAudit)
	require.NoError(t, err)
	top.AuditMaxBytes = int64(s.CachedInfo().State.Bytes / 2)
	require.NoError(t, bus.ChangeAudit(t.Context(), c, top))
	for !done {
		done, err = check.Continue(t.Context(), c, 20)
		require.NoError(t, err)
	}
	require.Empty(t, check.Faults)
	require.Greater(t, check.Records, 100)
	require.Less(t, check.Records, 250)
	require.Equal(t, uint64(300), check.Last)
	require.NotEmpty(t, check.Begun)
}

// A record that stands after later ones although it is much older than its place was moved. Retries take half a
// minute.
func TestAMovedRecordIsNamed(t *testing.T) {
	c := bustest.Single(t)
	w, err := auditlog.New(c, auditlog.Options{CloseMaxWait: time.Hour, Now: func() time.Time { return time.Now().Add(-time.Hour) }})
	require.NoError(t, err)
	for n := range 10 {
		w.Record(audit.Command, id.DefaultTenant, audit.Record{Entity: fmt.Sprint(n)})
	}
	w.Close()
	rebuild(t, c, func(l []*jetstream.RawStreamMsg) []*jetstream.RawStreamMsg {
		return append(append(l[:4:4], l[5:]...), l[4])
	})
	require.Contains(t, faults(verify(t, c)), "record 10, number 5 of chain")
}

// When old records have expired, the rest is still whole, and the report tells where it begins.
func TestTheRestOfAChainIsWhole(t *testing.T) {
	c := bustest.Single(t)
	fill(t, c, 1, 300)
	top := bus.DefaultTopology()
	s, err := c.JS().Stream(t.Context(), subject.StreamAudit)
	require.NoError(t, err)
	top.AuditMaxBytes = int64(s.CachedInfo().State.Bytes / 2)
	require.NoError(t, bus.ChangeAudit(t.Context(), c, top))
	r := verify(t, c)
	require.Empty(t, r.Faults)
	require.Greater(t, r.First, uint64(100))
	require.Len(t, r.Begun, 1)
	top.AuditMaxBytes *= 4
	require.NoError(t, bus.ChangeAudit(t.Context(), c, top))
	require.Contains(t, verify(t, c).Faults[0].Text, "were not old enough to expire", "a limit was lower for a while")
}

// A source without credentials cannot fill the log: its refusals are counted, and the log tells how many it lacks.
func TestAFloodOfRefusalsIsBounded(t *testing.T) {
	c := bustest.Single(t)
	at := time.Now()
	w, err := auditlog.New(c, auditlog.Options{CloseMaxWait: time.Hour, Now: func() time.Time { return at }})
	require.NoError(t, err)
	for range 500 {
		w.Record(audit.AuthFailed, id.Tenant{}, audit.Record{Outcome: audit.Denied, Remote: "a"})
	}
	w.Record(audit.AuthFailed, id.Tenant{}, audit.Record{Outcome: audit.Denied, Remote: "b"})
	w.Close()
	kept, told := 0, int64(0)
	for _, r := range read(t, c, auditlog.Query{}) {
		if told += r.Count; r.Action == audit.AuthFailed.String() {
			kept++
		}
	}
	require.Equal(t, 21, kept)
	require.Equal(t, int64(480), told)
	require.Empty(t, verify(t, c).Faults)
}
