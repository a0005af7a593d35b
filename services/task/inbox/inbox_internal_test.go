package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const source = "waggle/test"

// TestManyReplicasFillOneInbox: several replicas copy the same tasks at once, each in
// steps of its own, again and again from the beginning. Every event is there once, in
// the order of its task.
func TestManyReplicasFillOneInbox(t *testing.T) {
	t.Parallel()
	const replicas, tasks, each = 3, 4, 15
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	store, err := eventlog.New(bustest.Single(t), eventlog.Options{Logger: zerolog.Nop()})
	require.NoError(t, err)
	defer store.Close()
	fresh := func() *Inboxes {
		x, err := New(store, source, time.Now)
		require.NoError(t, err)
		return x
	}
	client, _, _, err := fresh().Create(ctx, id.DefaultTenant, "someone")
	require.NoError(t, err)
	to := LogOf(id.DefaultTenant, client)
	var all sync.WaitGroup
	for range replicas {
		x := fresh()
		for i := range tasks {
			all.Go(func() {
				from := taskLog(fmt.Sprint("t", i))
				events := someEvents(from, each)
				for n := 0; n < each; {
					n = min(each, n+1+rand.IntN(4))
					if err := x.Relay(ctx, to, from, events[:n]); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	next := map[string]uint64{}
	require.NoError(t, store.Read(ctx, to, eventlog.Cursor{Seq: 1}, func(e *eventlog.Entry) error {
		var o event.Origin
		require.NoError(t, e.Decode(&o))
		require.Equal(t, next[o.Log]+1, o.Seq, o.Log)
		next[o.Log] = o.Seq
		return nil
	}))
	require.Len(t, next, tasks)
	for log, last := range next {
		require.EqualValues(t, each, last, log)
	}
}

func taskLog(task string) subject.Log {
	return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTask, Entity: id.EntityFromExternal(task)}
}

func someEvents(log subject.Log, n int) []event.Event {
	out := make([]event.Event, 0, n)
	for i := range n {
		data := fmt.Sprintf(`{"task_id":%q,"message":%d}`, log.Entity, i)
		out = append(out, event.Event{
			SpecVersion: event.SpecVersion, ID: fmt.Sprint("n", i), Source: source, Type: event.TaskNotified, Subject: log.Name(),
			Time: time.Now().UTC(), Sequence: uint64(i + 1), Data: json.RawMessage(data),
		})
	}
	return out
}

// TestACopyKeepsWhatItSays: whatever an event's data, the copy has its members, knows
// where it comes from, and fits.
func TestACopyKeepsWhatItSays(t *testing.T) {
	t.Parallel()
	to, from := LogOf(id.DefaultTenant, "c"), taskLog("t")
	rapid.Check(t, func(t *rapid.T) {
		members := map[string]any{}
		for range rapid.IntRange(0, 5).Draw(t, "members") {
			size := rapid.SampledFrom([]int{0, 10, 100 << 10, 260 << 10}).Draw(t, "size")
			members[rapid.StringMatching(`[a-z<&"]{1,8}`).Draw(t, "name")] = strings.Repeat("x", size)
		}
		raw, err := json.Marshal(members)
		require.NoError(t, err)
		e := someEvents(from, 1)[0]
		e.Data, e.Sequence = raw, rapid.Uint64Range(1, 1<<40).Draw(t, "seq")
		c, err := Copy(to, e)
		require.NoError(t, err)
		require.LessOrEqual(t, len(c.Data), copyLimit+1000)
		require.Zero(t, c.Sequence)
		require.Equal(t, to.Name(), c.Subject)
		var o event.Origin
		require.NoError(t, c.Decode(&o))
		require.Equal(t, event.Origin{Log: from.Name(), Seq: e.Sequence}, o)
		var got map[string]any
		require.NoError(t, c.Decode(&got))
		for k, v := range members {
			if len(raw) < copyLimit {
				require.Equal(t, v, got[k])
			}
		}
	})
	bad := someEvents(from, 1)[0]
	for _, data := range []string{`1`, `null`, `[]`, `{`} {
		bad.Data = json.RawMessage(data)
		_, err := Copy(to, bad)
		require.Error(t, err, data)
	}
}

// TestAnInboxIsItsOwners: only the client that it was created for opens it again, and an event is added once, to an
// inbox that exists.
func TestAnInboxIsItsOwners(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	store, err := eventlog.New(bustest.Single(t), eventlog.Options{Logger: zerolog.Nop()})
	require.NoError(t, err)
	defer store.Close()
	x, err := New(store, source, time.Now)
	require.NoError(t, err)
	client, token, at, err := x.Create(ctx, id.DefaultTenant, "someone")
	require.NoError(t, err)
	log := LogOf(id.DefaultTenant, client)
	for o, want := range map[Owner]bool{
		{client, "someone", token}:     true,
		{client, "another", token}:     false,
		{client, "someone", ""}:        false,
		{"client_1", "someone", token}: false,
	} {
		last, own, err := x.Last(ctx, log, o)
		require.NoError(t, err)
		require.Equal(t, []any{want, at}, []any{own, last}, o)
	}
	for range 2 {
		known, err := x.Add(ctx, log, "m.message", event.InboxMessagedData{MessageID: "m"})
		require.NoError(t, err)
		require.True(t, known)
		known, err = x.Describe(ctx, log, event.InboxRegisteredData{ClientID: client})
		require.NoError(t, err)
		require.True(t, known)
	}
	last, err := store.Last(ctx, log)
	require.NoError(t, err)
	require.Equal(t, at.Seq+2, last.Seq)
	unknown := LogOf(id.DefaultTenant, "client_1")
	known, err := x.Has(ctx, unknown)
	require.NoError(t, err)
	require.False(t, known)
	known, err = x.Add(ctx, unknown, "m.message", event.InboxMessagedData{MessageID: "m"})
	require.NoError(t, err)
	require.False(t, known)
}
