package index_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// reindex rebuilds the entries of a tenant, with as many requests as it takes, and returns their number and the numbers of logs and
// of entries that were written.
func (w *world) reindex(tn id.Tenant, now func() time.Time) (requests int, logs, written int64) {
	w.t.Helper()
	for _, cfg := range []index.Config{{Kind: id.KindSession}, {Kind: id.KindTask, Fades: true}} {
		cfg.Index, cfg.Conn, cfg.Logger, cfg.Now = w.Index, w.conn, zerolog.Nop(), now
		f := index.NewFollower(cfg)
		for in := (command.ReindexRequest{Tenant: tn}); ; {
			part, err := f.Reindex(w.ctx, in)
			if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code == fault.BusUnavailable && w.ctx.Err() == nil {
				continue // a busy log: the same request again, as the error says
			}
			require.NoError(w.t, err)
			requests, logs, written = requests+1, logs+part.Logs, written+part.Written
			if in.After = part.Next; part.Next == "" {
				break
			}
		}
	}
	return requests, logs, written
}

// damage changes entries in the ways that no writer would, and returns how many.
func (w *world) damage() (changed int) {
	w.t.Helper()
	all := w.stored()
	names := slices.Sorted(maps.Keys(all))
	for i, name := range names {
		if isGone(all[name]) || name == subject.IndexPosition(id.KindSession) || name == subject.IndexPosition(id.KindTask) {
			continue
		}
		raw := []byte("{")
		switch i % 5 {
		case 0:
			w.purge(name)
			changed++
			continue
		case 1:
			raw = all[names[(i+1)%len(names)]] // of another log
		case 2:
			raw = []byte(`{"format":2,"owner":"eve","last_seq":1000000}`)
		case 3:
			continue
		}
		_, err := w.conn.JS().Publish(w.ctx, name, raw)
		require.NoError(w.t, err)
		changed++
	}
	return changed
}

// TestADamagedIndexIsMadeAnew from the logs, whatever its entries have become, by one long request as by many short ones.
func TestADamagedIndexIsMadeAnew(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]func() time.Time{"at once": time.Now, "in parts": hours()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3)
			for range 250 {
				w.event()
			}
			w.recover()
			want := w.entries()
			require.Greater(t, len(want), 20)
			require.Positive(t, w.damage())
			lost := subject.Log{Tenant: red, Kind: id.KindTask, Entity: id.EntityFromExternal("lost")}
			w.putSummary(sessionOf(red, "lost"))
			for _, name := range []string{lost.Index(), lost.Question(subject.QuestionsOpen, id.EntityFromExternal("i1"))} {
				_, err := w.conn.JS().Publish(w.ctx, name, []byte("{"))
				require.NoError(t, err)
			}
			w.putSummary(sessionOf(blue, "other"))
			requests, logs, written := w.reindex(red, now)
			require.Equal(t, name == "in parts", requests > 20, requests)
			require.Positive(t, logs)
			require.Positive(t, written)
			got := w.entries()
			require.NotEmpty(t, got[sessionOf(blue, "other").Index()], "of another tenant")
			delete(got, sessionOf(blue, "other").Index())
			require.Equal(t, want, got)
			_, _, written = w.reindex(red, now)
			require.Zero(t, written, "all is as it was")
		})
	}
}

// hours returns a clock by which each look takes an hour.
func hours() func() time.Time {
	var mu sync.Mutex
	at := time.Now()
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(time.Hour)
		return at
	}
}

// TestTheIndexIsMadeAnewWhileItFollows: logs change, a follower writes, and the entries end as the logs say.
func TestTheIndexIsMadeAnewWhileItFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	logs := make([]subject.Log, 8)
	for i := range logs {
		logs[i] = sessionOf(red, fmt.Sprint("s", i))
		w.append(logs[i], opened("ann"))
	}
	w.follow(index.Config{Every: time.Millisecond, CatchUp: time.Hour})
	var all sync.WaitGroup
	done := make(chan struct{})
	all.Go(func() {
		defer close(done)
		for n := range 30 {
			input := fmt.Sprint("i", n)
			for _, l := range logs {
				w.append(l, asksTool(input, "r1", `{}`))
				if n%3 > 0 {
					w.append(l, event.InputAnsweredData{InputID: input, RunID: "r1", Decision: event.DecisionApprove})
				}
			}
		}
	})
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		w.damage()
		w.reindex(red, time.Now)
	}
	all.Wait()
	w.recover()
	w.reindex(red, time.Now)
	got := w.entries()
	s, err := w.conn.JS().Stream(w.ctx, subject.StreamIndex)
	require.NoError(t, err)
	require.NoError(t, s.Purge(w.ctx, jetstream.WithPurgeSubject(subject.IndexAll)))
	w.reindex(red, time.Now)
	require.Equal(t, w.entries(), got)
	require.Len(t, w.inputs(red, subject.QuestionsOpen, 10), 80)
}

// TestABusyLogIsRebuilt: another process writes the summary without a pause, until the request has tried more often than one rebuild does.
func TestABusyLogIsRebuilt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	log := sessionOf(red, "busy")
	w.append(log, opened("ann"))
	w.recover()
	want := w.entries()
	var looks atomic.Int64 // at the clock, one after each rebuild that lost
	began := time.Now()
	f := index.NewFollower(index.Config{Index: w.Index, Conn: w.conn, Kind: id.KindSession, Logger: zerolog.Nop(), Now: func() time.Time {
		looks.Add(1)
		return began
	}})
	enough := int64(len(w.conn.Partitions().All())) + 50
	var other sync.WaitGroup
	defer other.Wait()
	started, over := make(chan struct{}), make(chan struct{})
	other.Go(func() {
		for n := 0; looks.Load() < enough; n++ {
			_, err := w.conn.JS().Publish(w.ctx, log.Index(), []byte("{"))
			if n == 0 {
				close(started)
			}
			select {
			case <-over:
				return
			default:
			}
			if !assert.NoError(t, err) {
				return
			}
		}
	})
	<-started
	out, err := f.Reindex(w.ctx, command.ReindexRequest{Tenant: red})
	close(over)
	require.NoError(t, err)
	require.Empty(t, out.Next)
	require.Equal(t, int64(1), out.Logs)
	other.Wait()
	w.reindex(red, time.Now)
	require.Equal(t, want, w.entries())
}

// TestAnUnknownPlaceIsRefused before anything is read.
func TestAnUnknownPlaceIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, after := range []string{"x", "1", "1.x", "-1.0", "1.-1", "99999.0", ".", "1.18446744073709551616"} {
		_, err := r.once().Reindex(r.ctx, command.ReindexRequest{Tenant: red, After: after})
		require.Equal(t, fault.InvalidField, fault.From(err, "").Code, after)
	}
	out, err := r.once().Reindex(r.ctx, command.ReindexRequest{Tenant: red, After: "300.7"})
	require.NoError(t, err)
	require.Empty(t, out.Next, "behind the end")
}
