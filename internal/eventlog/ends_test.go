package eventlog

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestEndsAreTheOldestAndTheNewestThatAreLeft(t *testing.T) {
	t.Parallel()
	s, log := newStore(t, single(t), Options{}), testLog("ends")
	first, last, err := s.Ends(t.Context(), log)
	require.NoError(t, err)
	require.Nil(t, first)
	require.Nil(t, last)

	fill(t, s, testLog("ends-0"), 0, 3)
	fill(t, s, log, 0, 5)
	first, last, err = s.Ends(t.Context(), log)
	require.NoError(t, err)
	require.Equal(t, "n0", first.ID)
	require.Equal(t, uint64(5), last.Sequence)

	expire(t, s, log, last.Stream-2)
	first, _, err = s.Ends(t.Context(), log)
	require.NoError(t, err)
	require.Equal(t, uint64(4), first.Sequence)
	require.Equal(t, uint64(4), first.Cursor().Seq)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = s.Ends(ctx, log)
	require.ErrorIs(t, err, context.Canceled)
}

// Callers that ask for the end of a log while a request is on its way share the next, which knows all that was appended
// before they asked.
func TestManyWhoAskForAnEndShareARequest(t *testing.T) {
	const callers = 100
	s, log := newStore(t, single(t), Options{}), testLog("shared")
	asked, err := s.nc.SubscribeSync("$JS.API.STREAM.MSG.GET." + subject.DefaultPartitions.Stream(log))
	require.NoError(t, err)
	require.Nil(t, s.ends.begin(log)) // a request is on its way
	fill(t, newStore(t, s.conn, Options{}), log, 0, 3)
	ask := func() (wait func()) {
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				end, err := s.Last(t.Context(), log)
				require.NoError(t, err)
				require.EqualValues(t, 3, end.Seq)
			})
		}
		require.Eventually(t, func() bool {
			s.ends.mu.Lock()
			defer s.ends.mu.Unlock()
			return s.ends.now[log].wanted == callers
		}, time.Minute, time.Millisecond)
		return wg.Wait
	}
	wait := ask()
	require.NoError(t, s.nc.Flush())
	before, _, err := asked.Pending()
	require.NoError(t, err)
	s.share(log, s.ends.next(log), nil)
	wait()
	require.NoError(t, s.nc.Flush())
	after, _, err := asked.Pending()
	require.NoError(t, err)
	require.Equal(t, 1, after-before)
	require.NoError(t, asked.Unsubscribe())
	require.Empty(t, s.ends.now)

	// One that gives up delays no other, and a leader that does not answer is not asked twice.
	require.Nil(t, s.ends.begin(log))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Last(ctx, log)
	require.ErrorIs(t, err, context.Canceled)
	due := s.ends.next(log)
	s.share(log, due, unavailable(context.DeadlineExceeded))
	<-due.done
	require.ErrorIs(t, due.err, fault.New(fault.BusUnavailable))
	require.Empty(t, s.ends.now)
}

// A client that returns to a log costs one request for the log's end: the one that opens the tail.
func TestAReturnAsksForTheEndOnce(t *testing.T) {
	t.Parallel()
	s, log := newStore(t, single(t), Options{}), testLog("returns")
	fill(t, newStore(t, s.conn, Options{}), log, 0, 3)
	asked, err := s.nc.SubscribeSync("$JS.API.STREAM.MSG.GET." + subject.DefaultPartitions.Stream(log))
	require.NoError(t, err)
	requests := func() int {
		require.NoError(t, s.nc.Flush())
		n, _, err := asked.Pending()
		require.NoError(t, err)
		return n
	}
	at, err := s.Attend(t.Context(), log)
	require.NoError(t, err)
	require.EqualValues(t, 3, at.Seq)
	r := newRecorder(10)
	v := watch(s, log, Cursor{}, r)
	r.reach(t, 3)
	require.Equal(t, 1, requests())

	// Of a log that is watched it tells of events that the viewers have not seen yet.
	inject(t, s.conn, log, newEvent(log, "unannounced", delta("m", "x")), 4, at.Stream)
	at, err = s.Attend(t.Context(), log)
	require.NoError(t, err)
	require.EqualValues(t, 4, at.Seq)
	require.Equal(t, 2, requests())
	v.Close()
}

// A log without events, and a deleted one, is not watched because its end was asked for.
func TestAnEndToNothingLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newStore(t, single(t), Options{})
	none, gone := testLog("none"), testLog("gone")
	fill(t, s, gone, 0, 3)
	remove(t, s, gone)
	at, err := s.Attend(t.Context(), none)
	require.NoError(t, err)
	require.Zero(t, at)
	_, err = s.Attend(t.Context(), gone)
	require.ErrorIs(t, err, ErrDeleted)
	for _, log := range []subject.Log{none, gone} {
		require.Nil(t, s.tail(tailKey(log)), log)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Attend(ctx, testLog("cancelled"))
	require.ErrorIs(t, err, context.Canceled)
}
