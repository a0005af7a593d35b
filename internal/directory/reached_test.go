package directory_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// A copy reaches a revision when it has it and has told all its watchers.
func TestACopyReachesWhatAnotherHasSeen(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b := open(t, bustest.Dial(t, s.URL)), open(t, bustest.Dial(t, s.URL))
	told := make(chan int, 1000)
	defer b.Watch(func() { told <- len(b.Members(directory.WhatService, session)) })()
	for i := range 20 {
		l := join(t, a, replica(session, "r"+string(rune('a'+i))))
		require.GreaterOrEqual(t, a.Revision(), l.Joined(), "Join returns when the own copy has it")
		require.NoError(t, b.Reach(maxWait(t), l.Joined()))
		require.GreaterOrEqual(t, b.Revision(), l.Joined())
		require.Len(t, b.Members(directory.WhatService, session), i+1)
		last := 0
		for len(told) > 0 {
			last = <-told
		}
		require.Equal(t, i+1, last, "what watches the copy was told before")
	}
	again := open(t, bustest.Dial(t, s.URL))
	require.NoError(t, again.Reach(maxWait(t), a.Revision()), "a copy that is made later has it all")
}

// A server that restarts takes the watches of copies along. It does not tell.
func TestACopyWhoseWatchIsLostReachesWhatAnotherHasSeen(t *testing.T) {
	t.Parallel()
	s := start(t)
	conn := bustest.Dial(t, s.URL)
	a := open(t, conn)
	bucket, err := conn.JS().Stream(maxWait(t), subject.BucketStream(subject.BucketDirectory))
	require.NoError(t, err)
	ours := map[string]bool{}
	for name := range bucket.ConsumerNames(maxWait(t)).Name() {
		ours[name] = true
	}
	b := open(t, bustest.Dial(t, s.URL))
	for name := range bucket.ConsumerNames(maxWait(t)).Name() {
		if !ours[name] {
			require.NoError(t, bucket.DeleteConsumer(maxWait(t), name))
		}
	}
	l := join(t, a, replica(session, "one"))
	require.NoError(t, b.Reach(maxWait(t), l.Joined()))
	sees(t, b, session, "one")
}

func TestReachIsBounded(t *testing.T) {
	t.Parallel()
	s := start(t)
	d := open(t, bustest.Dial(t, s.URL))
	far := d.Revision() + 1_000_000
	began := time.Now()
	require.ErrorContains(t, d.Reach(t.Context(), far), "behind")
	require.GreaterOrEqual(t, time.Since(began), 3*time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, d.Reach(ctx, far), context.Canceled)
	d.Close()
	require.ErrorContains(t, d.Reach(t.Context(), far), "closed")
}

func TestWhatASenderHasSeenTravels(t *testing.T) {
	t.Parallel()
	h := nats.Header{}
	directory.Inject(t.Context(), h)
	require.Empty(t, h, "a sender that does not say is not waited for")
	directory.Inject(directory.Seen(t.Context(), 42), h)
	ctx, seen := directory.Extract(t.Context(), h)
	require.EqualValues(t, 42, seen)
	on := nats.Header{}
	directory.Inject(ctx, on)
	require.Equal(t, h, on, "what the request asks in turn says it, too")
	for _, wrong := range []string{"", "-1", "x", "0", "99999999999999999999"} {
		_, seen := directory.Extract(t.Context(), nats.Header{"Waggle-Directory": {wrong}})
		require.Zero(t, seen, wrong)
	}
}
