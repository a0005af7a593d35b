package index_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

var (
	red  = mustTenant("red")
	blue = mustTenant("blue")
)

func mustTenant(s string) id.Tenant {
	t, err := id.ParseTenant(s)
	if err != nil {
		panic(err)
	}
	return t
}

// rig is a bus with logs and their index.
type rig struct {
	t    testing.TB
	ctx  context.Context
	conn *bus.Conn
	log  *eventlog.Store
	*index.Index
}

func newRig(t testing.TB) *rig { return rigOn(t, bustest.Single(t)) }

func rigOn(t testing.TB, conn *bus.Conn) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*bustest.MaxWait)
	t.Cleanup(cancel)
	store, err := eventlog.New(conn, eventlog.Options{})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	return &rig{t: t, ctx: ctx, conn: conn, log: store, Index: index.New(conn, store)}
}

func sessionOf(tn id.Tenant, name string) subject.Log {
	return subject.Log{Tenant: tn, Kind: id.KindSession, Entity: id.EntityFromExternal(name)}
}

// append appends events to a log.
func (r *rig) append(l subject.Log, data ...event.Data) {
	r.t.Helper()
	w := r.log.Writer(l, nil)
	require.NoError(r.t, w.Sync(r.ctx))
	from := w.Seq()
	require.NoError(r.t, w.Append(r.ctx, func() ([]event.Event, error) {
		if w.Seq() > from {
			return nil, nil
		}
		out := make([]event.Event, len(data))
		for i, d := range data {
			e, err := event.New(l, fmt.Sprintf("e-%d", from+uint64(i)), "test", time.Now(), d)
			if err != nil {
				return nil, err
			}
			out[i] = e
		}
		return out, nil
	}))
}

// store stores an event that no process announces.
func (r *rig) store(l subject.Log, seq uint64, data event.Data) {
	r.t.Helper()
	e, err := event.New(l, fmt.Sprint("stored-", seq), "test", time.Now(), data)
	require.NoError(r.t, err)
	e.Sequence = seq
	raw, err := json.Marshal(e)
	require.NoError(r.t, err)
	_, err = r.conn.JS().PublishMsg(r.ctx, &nats.Msg{Subject: subject.DefaultPartitions.Event(l), Data: raw, Header: nats.Header{event.HeaderSeq: {fmt.Sprint(seq)}, event.HeaderType: {string(e.Type)}}})
	require.NoError(r.t, err)
}

// follow starts a follower.
func (r *rig) follow(cfg index.Config) *index.Follower {
	cfg.Index, cfg.Conn, cfg.Kind, cfg.Logger = r.Index, r.conn, id.KindSession, zerolog.Nop()
	f := index.NewFollower(cfg)
	f.Start(r.t.Context())
	r.t.Cleanup(f.Stop)
	return f
}

// once is a follower for single catch-ups.
func (r *rig) once() *index.Follower {
	return index.NewFollower(index.Config{Index: r.Index, Conn: r.conn, Kind: id.KindSession, Logger: zerolog.Nop()})
}

func (r *rig) page(tn id.Tenant, before uint64, want int) index.Page {
	r.t.Helper()
	p, err := r.Page(r.ctx, tn, id.KindSession, before, want)
	require.NoError(r.t, err)
	return p
}

// all walks through all pages.
func (r *rig) all(tn id.Tenant, want int) []index.Stored {
	r.t.Helper()
	var out []index.Stored
	before := uint64(0)
	for {
		p := r.page(tn, before, want)
		out = append(out, p.Summaries...)
		if !p.More {
			return out
		}
		before = p.Summaries[len(p.Summaries)-1].Sequence
	}
}

func names(list []index.Stored) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = s.Log.Entity.String()
	}
	return out
}

// until waits for a summary of which the condition is true.
func (r *rig) until(l subject.Log, what string, enough func(index.Stored) bool) index.Stored {
	r.t.Helper()
	var out index.Stored
	require.Eventually(r.t, func() bool {
		for _, s := range r.all(l.Tenant, 100) {
			if s.Log == l && enough(s) {
				out = s
				return true
			}
		}
		return false
	}, bustest.MaxWait, 20*time.Millisecond, what)
	return out
}

// summary is a stored summary of usual length.
var summary = []byte(`{"format":2,"known":true,"owner":"ann","dialect":"orbit","question":"` + strings.Repeat("q", 100) +
	`","created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05.123456Z","runs":1,"last_seq":12,"last_event":"run.completed","position":12345}`)

// putSummary writes a summary without a log.
func (r *rig) putSummary(l subject.Log) {
	r.t.Helper()
	_, err := r.conn.JS().Publish(r.ctx, l.Index(), summary)
	require.NoError(r.t, err)
}

// putMany writes the summaries of n sessions without logs, each one several times.
func (r *rig) putMany(tn id.Tenant, n, times int) {
	r.t.Helper()
	for range times {
		for i := range n {
			_, err := r.conn.JS().PublishAsync(sessionOf(tn, fmt.Sprint("session-", i*7919%n)).Index(), summary)
			require.NoError(r.t, err)
			if i%1000 == 999 {
				<-r.conn.JS().PublishAsyncComplete()
			}
		}
		<-r.conn.JS().PublishAsyncComplete()
	}
}
