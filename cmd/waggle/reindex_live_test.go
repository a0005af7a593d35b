package main

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// TestReindex: entries of the index are lost, changed and broken, people chat, and the command makes what a new index is.
func TestReindex(t *testing.T) {
	t.Parallel()
	i := start(t)
	for _, line := range []string{`waggle chat "What is 6 * 7?"`, `waggle chat "What is 7 * 7?"`, `waggle chat "What is 8 * 7?"`, `waggle tasks create --agent assistant "compute 6*7"`} {
		out, err := i.run(t, line)
		require.NoError(t, err, out)
	}
	keeper := i.index(t)
	var summaries []subject.Log
	require.Eventually(t, func() bool {
		summaries = summaries[:0]
		for name := range keeper.entries(t) {
			if log, err := subject.ParseIndex(name); err == nil && log.Kind == id.KindSession {
				summaries = append(summaries, log)
			}
		}
		return len(summaries) >= 3
	}, maxWait, 50*time.Millisecond)
	ghost := subject.Log{Tenant: summaries[0].Tenant, Kind: id.KindSession, Entity: id.EntityFromExternal("ghost")}
	asks := func(log subject.Log) string { return log.Question(subject.QuestionsOpen, id.EntityFromExternal("i1")) }
	keeper.purge(t, summaries[0].Index())
	keeper.put(t, summaries[1].Index(), `{"format":2,"owner":"mallory","known":true,"last_seq":100000,"updated_at":"2026-01-01T00:00:00Z"}`)
	keeper.put(t, ghost.Index(), `{"format":2,"last_seq":7,"updated_at":"2026-01-01T00:00:00Z"}`)
	for _, log := range []subject.Log{summaries[2], ghost} {
		raw, err := json.Marshal(map[string]any{"id": "session." + log.Entity.String() + ".i1", "input_id": "i1", "state": api.QuestionOpen, "kind": "session", "log_id": log.Entity.String(), "last_seq": 3})
		require.NoError(t, err)
		keeper.put(t, asks(log), string(raw))
	}

	stop := i.chatter(t)
	out, err := i.run(t, "waggle reindex")
	stop()
	require.NoError(t, err, out)
	require.Regexp(t, `(?m)^session logs: \d+ read, [1-9]\d* entries rewritten$`, out)
	require.Regexp(t, `(?m)^member logs: 0 read, 0 entries rewritten$`, out)
	require.Regexp(t, `(?m)^task logs: \d+ read, \d+ entries rewritten$`, out)
	has := keeper.entries(t)
	require.Contains(t, has, summaries[0].Index())
	require.NotContains(t, has[summaries[1].Index()], "mallory")
	for _, name := range []string{ghost.Index(), asks(ghost), asks(summaries[2])} {
		require.NotContains(t, has, name)
	}
	require.Eventually(t, func() bool { // the last answers are over, and their entries written
		is := keeper.entries(t)
		keeper.purge(t, subject.IndexAll)
		out, err := i.run(t, "waggle reindex")
		require.NoError(t, err, out)
		return maps.Equal(is, keeper.entries(t))
	}, maxWait, 50*time.Millisecond)
}

// chatter has people chat until it is stopped.
func (i *installation) chatter(t *testing.T) (stop func()) {
	t.Helper()
	over, begun := make(chan struct{}), make(chan struct{}, 1)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			if out, err := i.run(t, `waggle chat "What is 9 * 7?"`); err != nil || !strings.Contains(out, "63") {
				t.Errorf("%v: %s", err, out)
			}
			select {
			case begun <- struct{}{}:
			default:
			}
			select {
			case <-over:
				return
			default:
			}
		}
	})
	<-begun
	return func() { close(over); work.Wait() }
}

// indexKeeper reads and writes the index with the key of the service of sessions.
type indexKeeper struct{ conn *bus.Conn }

func (i *installation) index(t *testing.T) indexKeeper {
	t.Helper()
	conn, err := bus.Connect(t.Context(), bus.Config{URL: i.nats, Name: t.Name(), NKeySeedFile: i.seed(permission.Session), InboxPrefix: permission.Inbox(permission.Session)})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return indexKeeper{conn}
}

func (k indexKeeper) put(t *testing.T, name, data string) {
	t.Helper()
	_, err := k.conn.JS().Publish(t.Context(), name, []byte(data))
	require.NoError(t, err)
}

func (k indexKeeper) purge(t *testing.T, filter string) {
	t.Helper()
	s, err := k.conn.JS().Stream(t.Context(), subject.StreamIndex)
	require.NoError(t, err)
	require.NoError(t, s.Purge(t.Context(), jetstream.WithPurgeSubject(filter)))
}

// entries returns the summaries and questions, without markers and positions.
func (k indexKeeper) entries(t *testing.T) map[string]string {
	t.Helper()
	s, err := k.conn.JS().Stream(t.Context(), subject.StreamIndex)
	require.NoError(t, err)
	out, state := map[string]string{}, s.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := s.GetMsg(t.Context(), seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		require.NoError(t, err)
		var entry struct {
			Gone bool `json:"gone"`
		}
		require.NoError(t, json.Unmarshal(m.Data, &entry))
		if !entry.Gone && !strings.HasPrefix(m.Subject, "index.position.") {
			out[m.Subject] = string(m.Data)
		}
	}
	return out
}
