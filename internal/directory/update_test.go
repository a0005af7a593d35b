package directory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// data returns the data of the only member of a name in a directory.
func data(d *directory.Directory) string {
	if all := d.Members(directory.WhatService, session); len(all) == 1 {
		return string(all[0].Data)
	}
	return ""
}

func TestAMemberChangesWhatItSays(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := bustest.Dial(t, s.URL)
	own, other := open(t, c), open(t, bustest.Dial(t, s.URL))
	m := replica(session, "a")
	m.Data = json.RawMessage(`0`)
	l := join(t, own, m)
	for i := 1; i <= 20; i++ {
		require.NoError(t, l.Set(json.RawMessage(fmt.Sprint(i))))
		if i%5 == 0 {
			require.NoError(t, l.Shown(maxWait(t)))
			require.Equal(t, fmt.Sprint(i), data(own))
		}
	}
	require.NoError(t, other.Wait(maxWait(t), func(d *directory.Directory) bool { return data(d) == "20" }))
	require.Error(t, l.Set(json.RawMessage(`{`)))
	kv, err := c.JS().KeyValue(maxWait(t), subject.BucketDirectory)
	require.NoError(t, err)
	key := subject.DirectoryKey(m.What, m.Name, m.Instance)
	said, err := kv.Get(maxWait(t), key)
	require.NoError(t, err)
	require.NoError(t, kv.Delete(maxWait(t), key))
	var again uint64 // of the heartbeat after the deletion
	require.Eventually(t, func() bool {
		now, err := kv.Get(maxWait(t), key)
		if err == nil && now.Revision() > said.Revision() {
			again = now.Revision()
		}
		return again > 0
	}, bustest.MaxWait, 10*time.Millisecond)
	require.NoError(t, other.Wait(maxWait(t), func(d *directory.Directory) bool { return d.Revision() >= again }))
	sees(t, other, session, "a")
	require.Equal(t, "20", data(other), "heartbeats say what was said last")
}

// TestWhatIsShownIsInTheRevision: a request that carries its sender's revision carries one that includes the change.
func TestWhatIsShownIsInTheRevision(t *testing.T) {
	t.Parallel()
	d := open(t, bustest.Dial(t, start(t).URL))
	m := replica(session, "a")
	m.Data = json.RawMessage(`0`)
	l := join(t, d, m)
	before := d.Revision()
	over, end := context.WithCancel(t.Context())
	end()
	between := make(chan error, 1) // during the calls of watchers the revision is the previous one
	defer d.Watch(func() {
		if data(d) == "1" {
			between <- l.Shown(over)
		}
	})()
	require.NoError(t, l.Set(json.RawMessage(`1`)))
	require.NoError(t, l.Shown(maxWait(t)))
	require.Greater(t, d.Revision(), before)
	require.ErrorIs(t, <-between, context.Canceled)
}

func TestALapsedMemberIsListedUntilItsLeaseEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	d := open(t, bustest.Dial(t, s.URL))
	ending, err := directory.Open(maxWait(t), bustest.Dial(t, s.URL))
	require.NoError(t, err)
	l := join(t, ending, replica(session, "a"))
	join(t, ending, replica(agent, "b"))
	sees(t, d, session, "a")
	sees(t, d, agent, "b")
	l.Lapse()
	require.NoError(t, l.Leave(maxWait(t)))
	ending.Close()
	sees(t, d, agent)
	require.Len(t, d.Members(directory.WhatService, session), 1, "who lapses is not taken off the list")
	sees(t, d, session)
}
