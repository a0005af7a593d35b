package task

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
	to := clientLog(id.DefaultTenant, "client_1")
	fresh := func() *inboxes {
		x, err := newInboxes(store, time.Now)
		require.NoError(t, err)
		return x
	}
	opened, err := event.New(to, "created", source, time.Now(), event.InboxCreatedData{ClientID: "client_1"})
	require.NoError(t, err)
	require.NoError(t, fresh().Get(to).Append(ctx, func(b *inbox) ([]event.Event, error) {
		if b.exists() {
			return nil, nil
		}
		return []event.Event{opened}, nil
	}))
	var all sync.WaitGroup
	for range replicas {
		x := fresh()
		for i := range tasks {
			all.Go(func() {
				from := taskLog(id.DefaultTenant, fmt.Sprint("t", i))
				events := someEvents(from, each)
				for n := 0; n < each; {
					n = min(each, n+1+rand.IntN(4))
					if err := x.relay(ctx, to, from, events[:n]); err != nil {
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
	to, from := clientLog(id.DefaultTenant, "c"), taskLog(id.DefaultTenant, "t")
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
		c, err := copied(to, e)
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
		_, err := copied(to, bad)
		require.Error(t, err, data)
	}
}

func TestTheIndexForgets(t *testing.T) {
	t.Parallel()
	x, now := newIndex(), time.Now()
	a, b := taskLog(id.DefaultTenant, "a"), taskLog(id.DefaultTenant, "b")
	x.put(a, place{agent: "w", attempt: 1, seen: now})
	x.put(b, place{agent: "w", attempt: 1, seen: now.Add(-time.Hour)})
	n, _ := x.load(id.DefaultTenant, "w")
	require.Equal(t, 2, n)
	x.forget(now.Add(-time.Minute))
	require.Len(t, x.all(), 1)
	x.put(a, place{seen: now})
	n, _ = x.load(id.DefaultTenant, "w")
	require.Zero(t, n)
	x.put(a, place{agent: "w", seen: now})
	x.drop(a, now)
	n, idle := x.load(id.DefaultTenant, "w")
	require.Zero(t, n)
	require.Equal(t, now, idle)
	x.forget(now.Add(time.Second))
	require.Empty(t, x.idle)
	require.Empty(t, x.held)
}
