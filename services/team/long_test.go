package team_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/team"
)

// longLog writes the log of a team whose coordinator has streamed answers for a long
// time: n events of the coordinator, as a relay would have taken them over.
func (r *rig) longLog(name string, n int) subject.Log {
	r.T.Helper()
	l := teamLog(id.EntityFromExternal(name))
	lead := agentOf(r.T, l, "Lead")
	w := r.Store().Writer(l, nil)
	put := func(eventID string, d event.Data) {
		e, err := event.New(l, eventID, "test", time.Now(), d)
		require.NoError(r.T, err)
		done := false
		require.NoError(r.T, w.Append(r.Ctx, func() ([]event.Event, error) {
			if done {
				return nil, nil
			}
			done = true
			return []event.Event{e}, nil
		}))
	}
	put("created", event.TeamCreatedData{TeamID: l.Entity.String(), Definition: teamOf(name, agent("Lead"), agent("Writer")), Principal: "alice"})
	put("start", event.TeamMemberStartedData{Name: "Lead", Kind: event.MemberAgent, ID: lead.Entity.String()})
	for i := 1; i <= n; i++ {
		run := fmt.Sprint("run", i/1000)
		var d event.Data = event.MessageDeltaData{MessageID: run + ".m", RunID: run, Attempt: 1, Text: strings.Repeat("the quick brown fox ", 4)}
		switch i % 1000 {
		case 0:
			put(fmt.Sprint("m", i), event.TeamMessageData{MessageID: fmt.Sprint("m", i), Member: "Lead", Content: "go on"})
			d = event.MessageReceivedData{MessageID: fmt.Sprint("m", i), RunID: run, Content: "go on"}
		case 1:
			d = event.RunStartedData{RunID: run}
		case 999:
			d = event.RunCompletedData{RunID: run, Content: "done"}
		}
		inner, err := event.New(lead, fmt.Sprint("e", i), "test", time.Now(), d)
		require.NoError(r.T, err)
		inner.Sequence = uint64(i)
		put(fmt.Sprintf("%s.%d", lead.Entity, i), event.TeamMemberEventData{MemberName: "Lead", MemberID: lead.Entity.String(), Seq: uint64(i), Event: servicetest.JSON(r.T, inner)})
	}
	return l
}

// view asks for a team as often as it takes: a replica that reads a long log answers late.
func (r *rig) view(l subject.Log) cmd.TeamView {
	r.T.Helper()
	var v cmd.TeamView
	for {
		err := rpc.Call(r.Ctx, r.Conn, cmd.Team, cmd.ShowTeam, cmd.TeamRequest{Tenant: tenant, Principal: "alice", TeamID: l.Entity.String()}, &v)
		if !errors.Is(err, fault.New(fault.BusUnavailable)) {
			require.NoError(r.T, err)
			return v
		}
		require.NoError(r.T, r.Ctx.Err())
	}
}

// forget takes the beginning of the log away, up to the event with the sequence.
func (r *rig) forget(l subject.Log, seq uint64) {
	r.T.Helper()
	s, err := r.Conn.JS().Stream(r.Ctx, subject.DefaultPartitions.Stream(l))
	require.NoError(r.T, err)
	require.NoError(r.T, s.Purge(r.Ctx, jetstream.WithPurgeSubject(subject.DefaultPartitions.Event(l)), jetstream.WithPurgeSequence(r.Stored(l)[seq].Stream)))
}

// TestATakeoverReadsOnFromASnapshot: a replica that takes over a team with a long log reads the
// events after the newest snapshot, and has the same state as one that reads the whole log.
func TestATakeoverReadsOnFromASnapshot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.longLog("long", 2100)
	one := r.start("one", team.Config{})
	whole := r.view(l)
	one.Stop()
	require.Len(t, r.Stored(l), int(r.head(l)))
	r.forget(l, 1000)
	two := r.start("two", team.Config{})
	require.Equal(t, whole, r.view(l), "the beginning of the log was not read")
	r.message(l, "m", "Writer", "hello")
	require.Eventually(t, func() bool { return r.view(l).Status == event.TeamRunning }, maxWait, 10*time.Millisecond)
	two.Stop()
	r.start("three", team.Config{})
	require.Equal(t, event.TeamRunning, r.view(l).Status, "what came after the snapshot counts")
}

// head is the sequence of the newest event of a log.
func (r *rig) head(l subject.Log) uint64 {
	r.T.Helper()
	at, err := r.Log.Last(r.Ctx, l)
	require.NoError(r.T, err)
	return at.Seq
}

// BenchmarkTakeover measures how long a replica takes to load a team from another one, with a log
// of 100,000 events: the first time without a snapshot, the second time with one.
func BenchmarkTakeover(b *testing.B) {
	r := rigOn(b, bustest.Single(b))
	l := r.longLog("long", 100_000)
	b.ResetTimer()
	for i, name := range []string{"whole-ms", "snapshot-ms"} {
		s := r.start(fmt.Sprint("replica", i), team.Config{})
		began := time.Now()
		r.view(l)
		b.ReportMetric(float64(time.Since(began).Milliseconds()), name)
		s.Stop()
	}
}
