package index_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestTheIndexFollowsAnnouncements, and leaves a session alone for a while after each write.
func TestTheIndexFollowsAnnouncements(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var mu sync.Mutex
	now := time.Now()
	r.follow(index.Config{
		CatchUp: time.Hour, // announcements alone
		Now:     func() time.Time { mu.Lock(); defer mu.Unlock(); return now },
		After: func(d time.Duration) <-chan time.Time {
			if d == time.Hour {
				return nil
			}
			return time.After(time.Millisecond)
		},
	})
	r.until(r.positioned(), "the follower has caught up", func(index.Stored) bool { return true })
	l, other := sessionOf(red, "s1"), sessionOf(red, "s2")
	r.append(l, opened("ann"))
	first := r.until(l, "opened", func(s index.Stored) bool { return s.LastSeq == 1 })
	r.append(l, asked("r1", "hello"))
	r.append(other, opened("ben"))
	r.until(other, "opened", func(s index.Stored) bool { return s.LastSeq == 1 })
	require.Equal(t, first, r.until(l, "as before", func(index.Stored) bool { return true }), "written a moment ago")
	mu.Lock()
	now = now.Add(time.Second)
	mu.Unlock()
	r.until(l, "asked", func(s index.Stored) bool { return s.State() == "running" })
	require.Equal(t, []string{"s1", "s2"}, names(r.all(red, 10)))
	r.append(other, event.SessionDeletedData{})
	require.Eventually(t, func() bool { return len(r.all(red, 10)) == 1 }, bustest.MaxWait, 10*time.Millisecond)
}

// ticked starts a follower, which has caught up, and returns the channel that makes it catch up again.
func (r *rig) ticked() chan<- time.Time {
	r.t.Helper()
	tick := make(chan time.Time)
	r.follow(index.Config{CatchUp: time.Hour, After: func(d time.Duration) <-chan time.Time {
		if d == time.Hour {
			return tick
		}
		return time.After(d)
	}})
	r.until(r.positioned(), "the follower has caught up", func(index.Stored) bool { return true })
	return tick
}

// positioned appends a session that a follower finds when it catches up.
func (r *rig) positioned() subject.Log {
	l := sessionOf(mustTenant("start"), "start")
	r.append(l, opened("ann"))
	return l
}

// TestAKilledFollowerMissesNothing: what happened while none followed is in the index when one follows again.
func TestAKilledFollowerMissesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gone, l := sessionOf(red, "gone"), sessionOf(red, "s1")
	for _, one := range []subject.Log{gone, l} {
		r.append(one, opened("ann"))
	}
	first := r.follow(index.Config{})
	r.until(l, "opened", func(s index.Stored) bool { return s.LastSeq == 1 })
	r.until(gone, "opened", func(s index.Stored) bool { return s.LastSeq == 1 })
	first.Stop()
	r.append(l, asked("r1", "hello"))
	r.append(gone, event.SessionDeletedData{})
	r.append(sessionOf(red, "new"), opened("ann"))
	require.Equal(t, 2, len(r.all(red, 10)))
	r.follow(index.Config{CatchUp: time.Hour})
	r.until(l, "asked", func(s index.Stored) bool { return s.LastSeq == 2 })
	require.Eventually(t, func() bool { return fmt.Sprint(names(r.all(red, 10))) == "[new s1]" }, bustest.MaxWait, 10*time.Millisecond)
}

// TestALostAnnouncementIsFound by the next catch-up.
func TestALostAnnouncementIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tick := r.ticked()
	l := sessionOf(red, "s1")
	r.store(l, 1, opened("ann"))
	tick <- time.Now()
	r.until(l, "found", func(s index.Stored) bool { return s.LastSeq == 1 && s.Owner == "ann" })
}

// TestEveryLossOfAnnouncementsIsNoticed, and not only the first in a row of a subscription, which is all that the client library
// reports.
func TestEveryLossOfAnnouncementsIsNoticed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	busy, first, second := sessionOf(red, "busy"), sessionOf(red, "first"), sessionOf(red, "second")
	r.append(busy, opened("ann"))
	begun, release, open := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r.follow(index.Config{
		After: func(time.Duration) <-chan time.Time { return nil }, // announcements and losses alone
		Now: func() time.Time { // is asked for each time after announcements were taken
			select {
			case begun <- struct{}{}:
				select {
				case <-release:
				case <-open:
				}
			case <-open:
			}
			return time.Now()
		},
	})
	run := sync.OnceFunc(func() { close(open) })
	t.Cleanup(run)
	r.until(busy, "opened", func(index.Stored) bool { return true })
	announce := func(n int) {
		for range n {
			require.NoError(t, r.conn.NATS().Publish(busy.Live(string(event.RunStarted)), nil))
		}
		require.NoError(t, r.conn.Flush(r.ctx))
	}
	for _, l := range []subject.Log{first, second} {
		announce(1)
		<-begun // the follower has taken it
		announce(index.Announced)
		r.append(l, opened("ann"))
		require.NoError(t, r.conn.Flush(r.ctx))
		release <- struct{}{}
		if l == first {
			<-begun // it has taken them
			release <- struct{}{}
		} else {
			run()
		}
		r.until(l, "found", func(s index.Stored) bool { return s.LastSeq == 1 })
	}
}

// TestACatchUpReadsNothingAgain of what announcements have brought, and the rest.
func TestACatchUpReadsNothingAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tick := r.ticked()
	feeds, err := r.conn.NATS().SubscribeSync("$JS.EVENT.ADVISORY.CONSUMER.CREATED.>")
	require.NoError(t, err)
	require.NoError(t, r.conn.NATS().Flush())
	opens := func() int {
		n, _, err := feeds.Pending()
		require.NoError(t, err)
		return n
	}
	var last subject.Log
	for i := range 40 {
		last = sessionOf(red, fmt.Sprint("s", i))
		r.append(last, opened("ann"), asked("r1", "hello"))
		r.until(last, "asked", func(s index.Stored) bool { return s.LastSeq == 2 })
	}
	tick <- time.Now()
	tick <- time.Now() // the first catch-up is over
	require.Zero(t, opens(), "no shard was read")
	task := subject.Log{Tenant: red, Kind: id.KindTask, Entity: id.EntityFromExternal("t1")}
	r.append(task, event.TaskCreatedData{TaskHead: event.TaskHead{TaskID: "t1"}})
	tick <- time.Now()
	tick <- time.Now()
	require.Zero(t, opens(), "an event of another kind is no news")
	unannounced := sessionOf(red, "unannounced")
	r.store(unannounced, 1, opened("ben"))
	tick <- time.Now()
	r.until(unannounced, "found", func(s index.Stored) bool { return s.Owner == "ben" })
	require.Positive(t, opens())
	require.Len(t, r.all(red, 20), 41)
}

// TestALostIndexIsMadeAgain from the logs, in the order of their last events, whatever shards they are in.
func TestALostIndexIsMadeAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const n = 300
	var want []string
	for i := range n {
		l := sessionOf(red, fmt.Sprint("s", i))
		r.append(l, opened("ann"), asked("r1", "hello"))
		want = append([]string{l.Entity.String()}, want...)
	}
	f := r.once()
	require.NoError(t, f.CatchUp(r.ctx))
	require.Equal(t, want, names(r.all(red, 40)))
	before := r.all(red, 40)
	require.NoError(t, f.CatchUp(r.ctx))
	require.Equal(t, before, r.all(red, 40), "without news nothing is written")
	r.purgeIndex()
	require.NoError(t, f.CatchUp(r.ctx))
	require.Equal(t, want, names(r.all(red, 40)))
	require.NoError(t, r.conn.JS().DeleteStream(r.ctx, subject.StreamIndex))
	require.NoError(t, bus.Bootstrap(r.ctx, r.conn, bus.DefaultTopology()))
	require.NoError(t, f.CatchUp(r.ctx))
	require.Equal(t, want, names(r.all(red, 40)))
}

// TestAnUnreadableLogStopsNoOther.
func TestAnUnreadableLogStopsNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bad, good := sessionOf(red, "bad"), sessionOf(red, "good")
	_, err := r.conn.JS().Publish(r.ctx, subject.DefaultPartitions.Event(bad), []byte("{"))
	require.NoError(t, err)
	r.append(good, opened("ann"))
	require.NoError(t, r.once().CatchUp(r.ctx))
	require.Equal(t, []string{"good"}, names(r.all(red, 10)))
}

// TestTheOwnerWrites, and another process takes over when the owner changes.
func TestTheOwnerWrites(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var owner atomic.Bool
	var moved func()
	var mu sync.Mutex
	r.follow(index.Config{
		Owner: owner.Load, CatchUp: time.Hour,
		Watch: func(f func()) func() {
			mu.Lock()
			defer mu.Unlock()
			moved = f
			return func() {}
		},
	})
	l := sessionOf(red, "s1")
	r.append(l, opened("ann"))
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return moved != nil }, bustest.MaxWait, time.Millisecond)
	require.Empty(t, r.all(red, 10))
	owner.Store(true)
	moved()
	r.until(l, "opened", func(s index.Stored) bool { return s.LastSeq == 1 })
}

// TestTheIndexOutlivesABusThatRestarts.
func TestTheIndexOutlivesABusThatRestarts(t *testing.T) {
	t.Parallel()
	in := bustest.Start(t, bus.DefaultTopology())
	r := rigOn(t, bustest.Dial(t, in.URL))
	r.follow(index.Config{CatchUp: time.Hour})
	l := sessionOf(red, "s1")
	r.append(l, opened("ann"))
	r.until(l, "opened", func(s index.Stored) bool { return s.LastSeq == 1 })
	in.Stop()
	in.Start()
	other := rigOn(t, bustest.Dial(t, in.URL))
	other.append(l, asked("r1", "hello"))
	other.until(l, "asked", func(s index.Stored) bool { return s.LastSeq == 2 })
}

// TestAPageCostsTheSame however many sessions the tenant and the installation have, wherever the page lies.
func TestAPageCostsTheSame(t *testing.T) {
	r := newRig(t)
	const n, size = 5000, 50
	r.putMany(blue, n, 1)
	r.putMany(red, n, 2)
	r.putMany(blue, n/2, 1)
	before := uint64(0)
	for page := 0; page*size < n; page++ {
		was := r.conn.NATS().Stats()
		p := r.page(red, before, size)
		require.Len(t, p.Summaries, size)
		require.Equal(t, n, p.Total)
		is := r.conn.NATS().Stats()
		require.LessOrEqual(t, is.OutMsgs-was.OutMsgs, uint64(6), "requests of page %d", page)
		require.LessOrEqual(t, is.InBytes-was.InBytes, uint64(size*1400), "bytes of page %d", page)
		before = p.Summaries[size-1].Sequence
	}
}

func BenchmarkPage(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newRig(b)
			r.putMany(red, n, 3)
			b.ReportAllocs()
			start := r.conn.NATS().Stats().InBytes
			for b.Loop() {
				p, err := r.Page(b.Context(), red, id.KindSession, 0, 200)
				require.NoError(b, err)
				require.Len(b, p.Summaries, 200)
			}
			b.ReportMetric(float64(r.conn.NATS().Stats().InBytes-start)/float64(b.N), "bus-B/op")
		})
	}
}
