package directory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	session = id.MustName("session")
	agent   = id.MustName("agent")
)

// lease is the time to live in these tests: long enough for heartbeats on a busy machine, short enough to wait for.
const lease = 6 * time.Second

func start(t *testing.T) *bustest.Instance {
	top := bus.DefaultTopology()
	top.LeaseTTL = lease
	return bustest.Start(t, top)
}

func open(t *testing.T, c *bus.Conn) *directory.Directory {
	d, err := directory.Open(maxWait(t), c)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

func maxWait(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), bustest.MaxWait)
	t.Cleanup(cancel)
	return ctx
}

func replica(name id.Name, instance string) directory.Member {
	return directory.Member{What: directory.WhatService, Name: name, Instance: id.MustName(instance)}
}

func join(t *testing.T, d *directory.Directory, m directory.Member) *directory.Lease {
	l, err := d.Join(maxWait(t), m)
	require.NoError(t, err)
	return l
}

// sees waits until the directory lists exactly these instances of the name, in order.
func sees(t *testing.T, d *directory.Directory, name id.Name, want ...string) {
	t.Helper()
	err := d.Wait(maxWait(t), func(d *directory.Directory) bool {
		return fmt.Sprint(instances(d, name)) == fmt.Sprint(want)
	})
	require.NoError(t, err, "want %v, have %v", want, instances(d, name))
}

func instances(d *directory.Directory, name id.Name) []string {
	out := []string{}
	for _, m := range d.Members(directory.WhatService, name) {
		out = append(out, m.Instance.String())
	}
	return out
}

func TestMembersAreListedEverywhereUntilTheyLeave(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b := open(t, bustest.Dial(t, s.URL)), open(t, bustest.Dial(t, s.URL))
	m := replica(session, "two")
	m.Data = json.RawMessage(`{"model":"demo"}`)
	two := join(t, a, m)
	require.Len(t, a.Members(directory.WhatService, session), 1, "Join returns once the own copy has it")
	one := join(t, b, replica(session, "one"))
	join(t, b, replica(agent, "three"))
	for _, d := range []*directory.Directory{a, b} {
		sees(t, d, session, "one", "two")
		sees(t, d, agent, "three")
		require.JSONEq(t, `{"model":"demo"}`, string(d.Members(directory.WhatService, session)[1].Data))
		require.False(t, d.Members(directory.WhatService, session)[0].Started.IsZero())
		require.Len(t, d.All(directory.WhatService), 3)
	}
	require.NoError(t, one.Leave(maxWait(t)))
	require.NoError(t, one.Leave(maxWait(t)))
	sees(t, a, session, "two")
	sees(t, open(t, bustest.Dial(t, s.URL)), session, "two")
	require.NoError(t, two.Leave(maxWait(t)))
	sees(t, b, session)
}

func TestTheDeadAreDroppedAndTheLivingAreNot(t *testing.T) {
	t.Parallel()
	s := start(t)
	d := open(t, bustest.Dial(t, s.URL))
	join(t, d, replica(session, "living"))
	doomed := bustest.Dial(t, s.URL)
	l := join(t, open(t, doomed), replica(session, "doomed"))
	require.NoError(t, d.Reach(maxWait(t), l.Joined()), "all have been told of the join")
	sees(t, d, session, "doomed", "living")
	var told, calls atomic.Int64
	here := map[id.Name]bool{} // a busy machine may lose and find the living, too
	defer d.Each(func(c directory.Change) {
		if c.Gone != here[c.Member.Instance] {
			t.Errorf("a heartbeat counts as a change: %+v", c)
		}
		here[c.Member.Instance] = !c.Gone
		told.Add(1)
	})()
	defer d.Watch(func() {
		if calls.Add(1) > told.Load()-2 { // Each began with two
			t.Error("a heartbeat counts as a change")
		}
	})()
	doomed.NATS().Close()
	sees(t, d, session, "living")
	join(t, d, replica(session, "doomed"))
	sees(t, d, session, "doomed", "living")
	require.GreaterOrEqual(t, told.Load(), int64(4), "the death is a change, and the return is")
}

func TestAVanishedKeyIsPutAgain(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := bustest.Dial(t, s.URL)
	d := open(t, c)
	m := replica(session, "a")
	join(t, d, m)
	kv, err := c.JS().KeyValue(maxWait(t), subject.BucketDirectory)
	require.NoError(t, err)
	gone := make(chan struct{}, 10)
	defer d.Watch(func() {
		if len(d.Members(directory.WhatService, session)) == 0 {
			gone <- struct{}{}
		}
	})()
	require.NoError(t, kv.Delete(maxWait(t), subject.DirectoryKey(m.What, m.Name, m.Instance)))
	<-gone
	sees(t, d, session, "a")
}

// While the server is away one member dies, one leaves unseen and one stays.
func TestTheCopyIsReadAgainAfterAnOutage(t *testing.T) {
	t.Parallel()
	s := start(t)
	c, other, doomed := bustest.Dial(t, s.URL), bustest.Dial(t, s.URL), bustest.Dial(t, s.URL)
	d := open(t, c)
	join(t, open(t, other), replica(session, "living"))
	join(t, open(t, doomed), replica(session, "doomed"))
	sees(t, d, session, "doomed", "living")
	s.Stop()
	bustest.Down(t, c)
	require.Equal(t, []string{"doomed", "living"}, instances(d, session), "what was known is kept")
	doomed.NATS().Close()
	<-time.After(lease + time.Second) // all leases expire while the server is away
	s.Start()
	bustest.Up(t, c)
	sees(t, d, session, "living")
	join(t, d, replica(session, "later"))
	sees(t, d, session, "later", "living")
}

func TestAMemberJoinsOnceTheBusIsBack(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := bustest.Dial(t, s.URL)
	d := open(t, c)
	for range 5 { // a restart may take longer than Join waits
		s.Stop()
		bustest.Down(t, c)
		joined := make(chan error, 1)
		go func() {
			_, err := d.Join(maxWait(t), replica(session, "a"))
			joined <- err
		}()
		s.Start()
		if <-joined == nil {
			sees(t, d, session, "a")
			return
		}
	}
	t.Fatal("no member waited for its connection")
}

func TestCloseTakesItsMembersOffTheList(t *testing.T) {
	t.Parallel()
	s := start(t)
	d := open(t, bustest.Dial(t, s.URL))
	closing, err := directory.Open(maxWait(t), bustest.Dial(t, s.URL))
	require.NoError(t, err)
	join(t, closing, replica(session, "a"))
	sees(t, d, session, "a")
	closing.Close()
	sees(t, d, session)
	require.ErrorContains(t, closing.Wait(t.Context(), func(*directory.Directory) bool { return false }), "closed")
	_, err = closing.Join(maxWait(t), replica(session, "b"))
	require.ErrorContains(t, err, "closed")
	sees(t, d, session)
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := start(t)
	d := open(t, bustest.Dial(t, s.URL))
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{}, 10)
	result := make(chan error)
	go func() {
		result <- d.Wait(ctx, func(*directory.Directory) bool { asked <- struct{}{}; return false })
	}()
	<-asked
	join(t, d, replica(session, "a"))
	<-asked
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
}

func TestWhatIsNoMemberIsNotListed(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := bustest.Dial(t, s.URL)
	kv, err := c.JS().KeyValue(maxWait(t), subject.BucketDirectory)
	require.NoError(t, err)
	m := replica(session, "a")
	for key, value := range map[string]string{
		"service.session.junk":  `not json`,
		"service.session.other": `{"what":"service","name":"session","instance":"a"}`, // claims another key
		"service.session.bad":   `{"what":"service","name":"ses.sion","instance":"bad"}`,
	} {
		_, err := kv.PutString(maxWait(t), key, value)
		require.NoError(t, err)
	}
	d := open(t, c)
	join(t, d, m)
	sees(t, d, session, "a")
	revision, err := kv.PutString(maxWait(t), subject.DirectoryKey(m.What, m.Name, m.Instance), "gone mad")
	require.NoError(t, err)
	require.NoError(t, d.Reach(maxWait(t), revision))
	sees(t, d, session, "a") // the next heartbeat restores the entry
}

func TestABucketWithoutALeaseTimeIsRefused(t *testing.T) {
	t.Parallel()
	top := bus.DefaultTopology()
	top.LeaseTTL = 0
	s := bustest.Start(t, top)
	_, err := directory.Open(maxWait(t), bustest.Dial(t, s.URL))
	require.ErrorContains(t, err, "no time to live")
}
