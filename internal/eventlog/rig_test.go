package eventlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry"
	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry/entrytest"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func TestMain(m *testing.M) {
	bustest.Waiting()
	goleak.VerifyTestMain(m)
}

// rig is an installation of NATS that the conformance suite runs on.
type rig struct {
	*bustest.ClusterHandle
	name string
}

// newRig starts n servers with all streams.
func newRig(t testing.TB, n int) *rig {
	return &rig{ClusterHandle: bustest.Cluster(t, n), name: fmt.Sprintf("R%d", n)}
}

func (r *rig) connect(t testing.TB) *bus.Conn { return connect(t, r.URL()) }

func connect(t testing.TB, urls string) *bus.Conn { return bustest.Dial(t, urls) }

// store returns a Store over a separate connection.
func (r *rig) store(t testing.TB, o Options) *Store { return newStore(t, r.connect(t), o) }

func newStore(t testing.TB, conn *bus.Conn, o Options) *Store {
	s, err := New(conn, o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// stepDown makes the stream's leader give up, and waits for another.
func (r *rig) stepDown(conn *bus.Conn, stream string) {
	r.StepDown(conn, stream)
	r.LeaderOf(stream)
}

// single returns a connection to a fresh account with all streams.
func single(t testing.TB) *bus.Conn { return bustest.Single(t) }

func testLog(name string) subject.Log {
	e, err := id.ParseEntity(name)
	if err != nil {
		panic(err)
	}
	return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: e}
}

func newEvent(log subject.Log, eventID string, data event.Data) event.Event {
	ev, err := event.New(log, eventID, "test", time.Now(), data)
	if err != nil {
		panic(err)
	}
	return ev
}

func delta(message, text string) event.MessageDeltaData { return entrytest.Delta(message, text) }

// texts folds a log the way a viewer does.
func texts(t require.TestingT, log []*Entry) map[string]string {
	return entrytest.Texts(t, func(yield func(event.Event, []byte) bool) {
		for _, e := range log {
			if !yield(e.Event, e.Raw) {
				return
			}
		}
	})
}

// stored returns the entry that a log would hold.
func stored(t require.TestingT, log subject.Log, seq uint64, data event.Data) *Entry {
	ev := newEvent(log, fmt.Sprint("e", seq), data)
	ev.Sequence = seq
	raw, err := entry.Encode(ev)
	require.NoError(t, err)
	e, err := entry.Decode(ev.Subject, seq, seq*3, raw)
	require.NoError(t, err)
	return e
}

func notice(log subject.Log, eventID string) event.Event {
	return newEvent(log, eventID, event.NoticeData{Level: "info", Code: "test", Message: eventID})
}

// missing returns a decide function that appends the events that have is false for.
func missing(have func(id string) bool, events ...event.Event) func() ([]event.Event, error) {
	return func() ([]event.Event, error) {
		var out []event.Event
		for _, ev := range events {
			if !have(ev.ID) {
				out = append(out, ev)
			}
		}
		return out, nil
	}
}

// fold is the simplest state of a log: its entries, in order.
type fold struct{ ids []string }

func (f *fold) observe(e *Entry) { f.ids = append(f.ids, e.ID) }

func (f *fold) has(eventID string) bool {
	for _, s := range f.ids {
		if s == eventID {
			return true
		}
	}
	return false
}

// fill appends n notices to the log.
func fill(t testing.TB, s *Store, log subject.Log, from, n int) {
	w := s.Writer(log, nil)
	for i := range n {
		sent := false
		require.NoError(t, w.Append(t.Context(), func() ([]event.Event, error) {
			if sent {
				return nil, nil
			}
			sent = true
			return []event.Event{notice(log, fmt.Sprintf("n%d", from+i))}, nil
		}))
	}
}

// inject stores an event without the knowledge of any writer and does not announce it.
func inject(t testing.TB, conn *bus.Conn, log subject.Log, ev event.Event, seq, expect uint64) uint64 {
	ev.Sequence = seq
	raw, err := entry.Encode(ev)
	require.NoError(t, err)
	m := &nats.Msg{Subject: subject.DefaultPartitions.Event(log), Data: raw, Header: nats.Header{
		event.HeaderMsgID: {ev.DedupeID()}, event.HeaderSeq: {fmt.Sprint(seq)}, event.HeaderType: {string(ev.Type)},
		nats.ExpectedLastSubjSeqHdr: {fmt.Sprint(expect)},
	}}
	answer, err := conn.NATS().RequestMsg(m, 10*time.Second)
	require.NoError(t, err)
	var a ack
	require.NoError(t, json.Unmarshal(answer.Data, &a))
	require.Nil(t, a.Error)
	return a.Seq
}

var errSynthetic = errors.New("synthetic")
