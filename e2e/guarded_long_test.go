//go:build nightly

package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// snapshotEvery is the number of events between two snapshots of a session.
const snapshotEvery = 2000

// TestASnapshotCannotBeForged: with a process for each role, a long session gets a snapshot from the roles that may store one,
// and loses it when it is deleted. The tool service cannot forge it.
func TestASnapshotCannotBeForged(t *testing.T) {
	g := startGuarded(t, "server.conf")
	g.run(permission.Bootstrap, "bootstrap")
	addr := g.serve()
	m := client.DialMyAgent(t, addr)
	m.Create("en_US", nil)
	for n := range 2 {
		m.Message("what is in my workspace?", nil)
		m.Until(myagent.AgentFinalAnswer)
		if n == 0 { // it began with the message
			g.lengthen(t, m.Session)
		}
	}
	operator, _ := g.dial(permission.Operator)
	js, err := jetstream.New(operator)
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), subject.BucketFolds)
	require.NoError(t, err)
	key := subject.FoldKey(logOf(m.Session))
	process.Eventually(t, "the session has a snapshot", func() bool {
		_, err := kv.Get(t.Context(), key)
		return err == nil
	})
	before, err := kv.Get(t.Context(), key)
	require.NoError(t, err)

	require.Empty(t, g.log.take())
	tools, refused := g.dial(permission.Tools)
	forged := subject.BucketSubject(subject.BucketFolds, key)
	require.NoError(t, tools.Publish(forged, before.Value()))
	require.NoError(t, awaitRefusal(refused, forged))
	var lines []string
	process.Eventually(t, "the server's log names it", func() bool {
		lines = append(lines, g.log.take()...)
		return len(lines) > 0
	})
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], forged)
	after, err := kv.Get(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, before.Revision(), after.Revision())

	require.Equal(t, http.StatusNoContent, remove(t, addr, m.Session))
	_, err = kv.Get(t.Context(), key)
	require.ErrorIs(t, err, jetstream.ErrKeyNotFound)
}

// lengthen appends as many notices to a session as come between two snapshots.
func (g *guarded) lengthen(t *testing.T, session string) {
	t.Helper()
	conn, err := bus.Connect(t.Context(), bus.Config{
		URL: g.url, NKeySeedFile: keys.SeedFile(g.keys, permission.Session), InboxPrefix: permission.Inbox(permission.Session),
	})
	require.NoError(t, err)
	defer conn.Close()
	s, err := eventlog.New(conn, eventlog.Options{})
	require.NoError(t, err)
	defer s.Close()
	w, n := s.Writer(logOf(session), nil), 0
	notices := make([]event.Event, snapshotEvery)
	for i := range notices {
		notices[i], err = event.New(logOf(session), fmt.Sprint("long-", i), "test", time.Now(), event.NoticeData{Level: "info", Code: "LONG", Message: "more"})
		require.NoError(t, err)
	}
	require.NoError(t, w.Append(t.Context(), func() ([]event.Event, error) {
		if n++; n > 1 {
			return nil, errors.New("another process writes")
		}
		return notices, nil
	}))
}
