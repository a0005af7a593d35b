package events_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/gateway/events"
	"github.com/waggle-dev/waggle/gateway/events/canonical"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

// client is a transport whose queue holds a number of messages until the client reads.
type client struct {
	mu      sync.Mutex
	room    int
	queue   []*transport.Message
	news    chan struct{} // holds one signal: the queue or the end has changed
	ended   *fault.Fault
	done    chan struct{}
	refused int // messages for which the queue had no room
}

func newClient(room int) *client {
	return &client{room: room, news: make(chan struct{}, 1), done: make(chan struct{})}
}

func (c *client) changed() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

func (c *client) Send(ms ...*transport.Message) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed()
	if c.ended != nil {
		return 0
	}
	n := min(len(ms), c.room-len(c.queue))
	c.queue = append(c.queue, ms[:n]...)
	c.refused += len(ms) - n
	return n
}

func (c *client) Force(m *transport.Message) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed()
	if c.ended != nil {
		return false
	}
	c.queue = append(c.queue, m)
	return true
}

func (c *client) End(f *fault.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed()
	if c.ended == nil {
		c.ended = f
		close(c.done)
	}
}

func (c *client) Done() <-chan struct{} { return c.done }

// until waits until the condition holds.
func (c *client) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	late := time.After(bustest.MaxWait)
	for {
		c.mu.Lock()
		ok := holds()
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-c.news:
		case <-late:
			require.FailNow(t, "it did not come in time: "+what)
		}
	}
}

// read empties the queue, which has at least n messages soon, and tells the binding of the room.
func (c *client) read(t *testing.T, b events.Binding, n int) (out []*transport.Message) {
	t.Helper()
	for len(out) < n {
		c.until(t, fmt.Sprintf("message %d of %d", len(out)+1, n), func() bool { return len(c.queue) > 0 })
		c.mu.Lock()
		out = append(out, c.queue...)
		c.queue = nil
		c.mu.Unlock()
		if b != nil {
			b.Room()
		}
	}
	return out
}

func (c *client) end(t *testing.T) *fault.Fault {
	t.Helper()
	c.until(t, "the end", func() bool { return c.ended != nil })
	return c.ended
}

var log = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")}

func maxWait(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bustest.MaxWait)
	t.Cleanup(cancel)
	return ctx
}

// announce publishes an announcement as the writer of a log does.
func announce(t *testing.T, c *bus.Conn, l subject.Log, kind event.Type, n int) {
	t.Helper()
	require.NoError(t, c.NATS().Publish(l.Live(string(kind)), fmt.Appendf(nil, `{"n":%d}`, n)))
}

// texts returns the names and data of messages.
func texts(ms []*transport.Message) (out []string) {
	for _, m := range ms {
		out = append(out, m.Event+" "+string(m.Data))
	}
	return out
}

func TestLiveShowsTheTypesOfOneTenant(t *testing.T) {
	t.Parallel()
	conn := bustest.Single(t)
	a := events.NewAnnouncements(conn, nil, zerolog.Nop(), time.Now)
	some, all := newClient(10), newClient(10)
	one, err := a.Show(maxWait(t), auth.Principal{Tenant: id.DefaultTenant}, []event.Type{event.RunStarted}, some, nil)
	require.NoError(t, err)
	subs := conn.NATS().NumSubscriptions()
	two, err := a.Show(maxWait(t), auth.Principal{Tenant: id.DefaultTenant}, nil, all, nil)
	require.NoError(t, err)
	require.Equal(t, subs, conn.NATS().NumSubscriptions(), "viewers of a tenant share its subscriptions")

	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	foreign, inbox := log, log
	foreign.Tenant, inbox.Kind = other, id.KindInbox
	announce(t, conn, foreign, event.RunStarted, 1)
	announce(t, conn, inbox, event.RunStarted, 2)
	announce(t, conn, log, event.RunStarted, 3)
	announce(t, conn, log, event.RunCompleted, 4)
	announce(t, conn, log, event.RunStarted, 5)
	require.Equal(t, []string{`run.started {"n":3}`, `run.completed {"n":4}`, `run.started {"n":5}`}, texts(all.read(t, two, 3)))
	require.Equal(t, []string{`run.started {"n":3}`, `run.started {"n":5}`}, texts(some.read(t, one, 2)))

	one.Close()
	announce(t, conn, log, event.RunStarted, 6)
	require.Len(t, all.read(t, two, 1), 1)
	require.Empty(t, some.queue, "a closed binding sends nothing")
	two.Close()
	require.Zero(t, conn.NATS().NumSubscriptions(), "the last viewer ends the subscriptions")
}

// TestASlowViewerLearnsHowMuchItHasLost: announcements have no history, so a client that does not read is told a number.
func TestASlowViewerLearnsHowMuchItHasLost(t *testing.T) {
	t.Parallel()
	conn := bustest.Single(t)
	a := events.NewAnnouncements(conn, nil, zerolog.Nop(), time.Now)
	slow, quick := newClient(3), newClient(100)
	one, err := a.Show(maxWait(t), auth.Principal{Tenant: id.DefaultTenant}, nil, slow, nil)
	require.NoError(t, err)
	defer one.Close()
	two, err := a.Show(maxWait(t), auth.Principal{Tenant: id.DefaultTenant}, nil, quick, nil)
	require.NoError(t, err)
	defer two.Close()
	const sent = 10
	for n := range sent {
		announce(t, conn, log, event.RunStarted, n)
	}
	require.Len(t, quick.read(t, two, sent), sent, "another viewer misses nothing")
	slow.until(t, "the last announcement", func() bool { return slow.refused >= sent-3 })
	got := slow.read(t, one, 3)
	require.Equal(t, []string{`run.started {"n":0}`, `run.started {"n":1}`, `run.started {"n":2}`}, texts(got))
	gap := slow.read(t, one, 1)
	require.Len(t, gap, 1)
	require.Equal(t, canonical.EventGap, gap[0].Event)
	var g canonical.Gap
	require.NoError(t, json.Unmarshal(gap[0].Data, &g))
	require.Equal(t, sent-3, g.Dropped)
	announce(t, conn, log, event.RunCompleted, sent)
	require.Equal(t, []string{`run.completed {"n":10}`}, texts(slow.read(t, one, 1)))
}

// stalled is a client that takes nothing until it continues.
type stalled struct {
	*client
	begun chan struct{} // holds one signal: a message waits
	goOn  chan struct{}
}

func (s *stalled) Send(ms ...*transport.Message) int {
	select {
	case s.begun <- struct{}{}:
	default:
	}
	<-s.goOn
	return s.client.Send(ms...)
}

// TestASlowGatewayTellsItsViewers what it has lost itself, although they would have had room.
func TestASlowGatewayTellsItsViewers(t *testing.T) {
	t.Parallel()
	conn := bustest.Single(t)
	a := events.NewAnnouncements(conn, nil, zerolog.Nop(), time.Now)
	c := &stalled{client: newClient(100), begun: make(chan struct{}, 1), goOn: make(chan struct{})}
	l, err := a.Show(maxWait(t), auth.Principal{Tenant: id.DefaultTenant}, nil, c, nil)
	require.NoError(t, err)
	defer l.Close()
	goOn := sync.OnceFunc(func() { close(c.goOn) })
	defer goOn()
	const sent = 10
	a.Bound(t, id.DefaultTenant, 2)
	announce(t, conn, log, event.RunStarted, 0)
	<-c.begun
	for n := range sent - 1 {
		announce(t, conn, log, event.RunStarted, n+1)
	}
	require.NoError(t, conn.Flush(maxWait(t)))
	goOn()
	shown, told := 0, 0
	for shown+told < sent {
		for _, m := range c.read(t, nil, 1) {
			if m.Event != canonical.EventGap {
				shown++
				continue
			}
			var g canonical.Gap
			require.NoError(t, json.Unmarshal(m.Data, &g))
			told += g.Dropped
		}
	}
	require.Positive(t, told)
	require.Equal(t, sent, shown+told)
}

func TestLiveWithoutABus(t *testing.T) {
	t.Parallel()
	conn := bustest.Dial(t, bustest.Single(t).NATS().ConnectedUrl())
	a := events.NewAnnouncements(conn, nil, zerolog.Nop(), time.Now)
	conn.Close()
	for range 2 { // a failure leaves nothing behind
		_, err := a.Show(maxWait(t), auth.Principal{Tenant: id.DefaultTenant}, nil, newClient(1), nil)
		require.ErrorIs(t, err, fault.New(fault.BusUnavailable))
	}
}

// rig is a store with a log of four events.
type rig struct {
	t      *testing.T
	store  *eventlog.Store
	writer *eventlog.Writer
	src    *stream.Source
	events int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s := bustest.Start(t, bus.DefaultTopology())
	conn := bustest.Dial(t, s.URL)
	store, err := eventlog.New(conn, eventlog.Options{})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	r := &rig{t: t, store: store, writer: store.Writer(log, nil), src: &stream.Source{
		Log: store, Loader: stream.NewLoader(nil, zerolog.Nop()), Logger: zerolog.Nop(), Clock: time.Now, Lagged: func(stream.Reason) {},
	}}
	for range 4 {
		r.append(event.NoticeData{Message: "m"})
	}
	return r
}

func (r *rig) append(d event.Data) {
	r.t.Helper()
	r.events++
	e, err := event.New(log, fmt.Sprintf("e%d", r.events), "test", time.Now(), d)
	require.NoError(r.t, err)
	done := false
	require.NoError(r.t, r.writer.Append(maxWait(r.t), func() ([]event.Event, error) {
		if done {
			return nil, nil
		}
		done = true
		return []event.Event{e}, nil
	}))
}

// seqs returns the positions of messages.
func seqs(ms []*transport.Message) (out []string) {
	for _, m := range ms {
		out = append(out, m.Position.String())
	}
	return out
}

func TestALogGoesOnBehindThePosition(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := newClient(2) // less than what is stored: the rest comes as the client reads
	b := events.NewLog(t.Context(), r.src, log, eventlog.Cursor{Seq: 1}, c, nil)
	c.until(t, "a full queue", func() bool { return c.refused > 0 })
	require.Equal(t, []string{"2", "3", "4"}, seqs(c.read(t, b, 3)))
	r.append(event.NoticeData{Message: "live"})
	require.Equal(t, []string{"5"}, seqs(c.read(t, b, 1)))
	b.Close()
	r.append(event.NoticeData{Message: "later"})
	require.Empty(t, c.queue)
	require.Nil(t, c.ended, "a closed binding does not end its connection")
}

func TestALogThatIsDeletedEndsTheConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := newClient(100)
	b := events.NewLog(t.Context(), r.src, log, eventlog.Cursor{}, c, nil)
	defer b.Close()
	require.Len(t, c.read(t, b, 4), 4)
	r.append(event.SessionDeletedData{})
	require.Equal(t, fault.SessionDeleted, c.end(t).Code)
	last := c.read(t, b, 2)
	require.Equal(t, string(event.SessionDeleted), last[0].Event, "the tombstone comes before the end")
	require.Equal(t, canonical.EventProblem, last[1].Event)
}

func TestAPositionBehindTheEndIsInvalid(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := newClient(100)
	b := events.NewLog(t.Context(), r.src, log, eventlog.Cursor{Seq: 40}, c, nil)
	defer b.Close()
	require.Equal(t, fault.CursorInvalid, c.end(t).Code)
	require.Equal(t, canonical.EventProblem, c.read(t, b, 1)[0].Event)
}

func TestAStoreThatClosesAsksToReconnect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := newClient(100)
	b := events.NewLog(t.Context(), r.src, log, eventlog.Cursor{}, c, nil)
	defer b.Close()
	require.Len(t, c.read(t, b, 4), 4)
	r.store.Close()
	require.Equal(t, fault.Draining, c.end(t).Code)
	require.Empty(t, c.queue, "it is no problem: the client resumes elsewhere")
}

// answer is a client that is answered once.
type answer struct {
	*client
	complete chan struct{}
	once     sync.Once
}

func (a *answer) Complete() { a.once.Do(func() { close(a.complete) }) }

func TestAPageEndsWithTheLogOrWithItsRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, c := range []struct {
		after, last uint64
		room        int
		want        []string
	}{
		{0, 4, 100, []string{"1", "2", "3", "4"}},
		{1, 4, 2, []string{"2", "3"}},
		{4, 4, 100, nil},
	} {
		to := &answer{client: newClient(c.room), complete: make(chan struct{})}
		events.Page(t.Context(), r.src, log, eventlog.Cursor{Seq: c.after}, c.last, to)
		<-to.complete
		require.Equal(t, c.want, seqs(to.queue))
		require.Nil(t, to.ended)
	}
}

func TestAPageOfADeletedLogIsAFault(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.append(event.SessionDeletedData{})
	to := &answer{client: newClient(100), complete: make(chan struct{})}
	events.Page(t.Context(), r.src, log, eventlog.Cursor{}, 40, to)
	require.Equal(t, fault.SessionDeleted, to.end(t).Code)
}
