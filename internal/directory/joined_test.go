package directory_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// The bucket orders the members by their join: all copies have the same order, whatever the members' clocks and
// however often they have renewed.
func TestTheBucketSaysWhoJoinedLater(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b := open(t, bustest.Dial(t, s.URL)), open(t, bustest.Dial(t, s.URL))
	first := join(t, a, replica(session, "z"))
	second := join(t, b, replica(session, "a"))
	require.Greater(t, second.Joined(), first.Joined())
	order := func(d *directory.Directory) []uint64 {
		sees(t, d, session, "a", "z")
		all := d.Members(directory.WhatService, session)
		return []uint64{all[1].Joined, all[0].Joined}
	}
	want := []uint64{first.Joined(), second.Joined()}
	require.Equal(t, want, order(a))
	require.NoError(t, first.Set(json.RawMessage(`"changed"`)))
	require.NoError(t, first.Shown(maxWait(t)))
	for _, d := range []*directory.Directory{a, b, open(t, bustest.Dial(t, s.URL))} {
		require.Equal(t, want, order(d))
	}
}

// A bucket that was created again counts from the beginning: earlier members must not look younger than later ones.
func TestABucketMadeAnewCountsAnew(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := bustest.Dial(t, s.URL)
	d := open(t, c)
	for range 10 {
		require.NoError(t, join(t, d, replica(session, "before")).Leave(maxWait(t)))
	}
	l := join(t, d, replica(session, "a"))
	require.Greater(t, l.Joined(), uint64(10))
	stream, err := c.JS().Stream(maxWait(t), "KV_"+subject.BucketDirectory)
	require.NoError(t, err)
	cfg := stream.CachedInfo().Config
	require.NoError(t, c.JS().DeleteStream(maxWait(t), cfg.Name))
	_, err = c.JS().CreateStream(maxWait(t), cfg)
	require.NoError(t, err)
	require.NoError(t, l.Set(json.RawMessage(`"changed"`)))
	require.Eventually(t, func() bool { return l.Joined() < 10 }, bustest.MaxWait, lease/100)
	later := join(t, open(t, bustest.Dial(t, s.URL)), replica(session, "b"))
	require.Greater(t, later.Joined(), l.Joined())
}
