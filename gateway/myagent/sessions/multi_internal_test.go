package sessions

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/myagent"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// client is the part of a connection that the tests need.
type client struct {
	binding.Connection
	query string
}

func (c client) Query() url.Values {
	q, _ := url.ParseQuery(c.query)
	return q
}

func (client) Client() *edge.Client {
	var who edge.Client
	who.Identify(auth.Principal{Subject: "alice", Tenant: id.DefaultTenant}, true)
	return &who
}

func bound(query string) *Multi {
	return New(&binding.Gateway{Edge: &edge.Edge{}}, Config{}).Bind(client{query: query}, nil, nil)
}

func session(name string) subject.Log {
	return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(name)}
}

// TestAckedSeq: an event id wins over a seq, and an invalid event id gives no position.
func TestAckedSeq(t *testing.T) {
	seven := uint64(7)
	for want, positions := range map[uint64][]myagent.Position{
		0: {{}, {EventID: "x"}, {EventID: "x", Seq: &seven}},
		7: {{Seq: &seven}, {EventID: "7"}, {EventID: "7.99"}},
		9: {{EventID: "9", Seq: &seven}},
	} {
		for _, p := range positions {
			require.Equal(t, want, ackedSeq(p), "%+v", p)
		}
	}
}

// TestNotedAcknowledgements: the highest position of each client counts, and the number of clients is bounded.
func TestNotedAcknowledgements(t *testing.T) {
	m := bound("")
	first := ackKey{session("s"), "phone"}
	for _, seq := range []uint64{3, 9, 5} {
		m.note(first, seq)
	}
	require.Equal(t, uint64(9), m.acks[first])
	for i := range 2 * maxAcks {
		m.note(ackKey{session("s"), fmt.Sprint(i)}, 1)
	}
	require.Len(t, m.acks, maxAcks)
	m.note(first, 12)
	require.Equal(t, uint64(12), m.acks[first], "a known client keeps its place")
}

// TestOwnEcho: a connection is not shown its own messages, unless its query asks for them.
func TestOwnEcho(t *testing.T) {
	received := func(messageID string) event.Event {
		e, err := event.New(session("s"), "e1", "test", event.Event{}.Time, event.MessageReceivedData{MessageID: messageID})
		require.NoError(t, err)
		return e
	}
	for query, own := range map[string]bool{"": true, "echo=false": true, "echo=0": true, "echo=true": false, "echo=1": false} {
		m := bound(query)
		require.NoError(t, m.readEcho())
		m.noteOwn([]command.Command{{ID: "c1", Verb: command.SendMessage}, {ID: "c2", Verb: command.Cancel}})
		require.Equal(t, own, m.ownEcho(received("c1")), query)
		require.False(t, m.ownEcho(received("c2")), query)
		require.False(t, m.ownEcho(event.Event{Type: event.RunCompleted}), query)
	}
	require.ErrorIs(t, bound("echo=maybe").readEcho(), fault.New(fault.InvalidField))
	m := bound("")
	require.NoError(t, m.readEcho())
	for i := range 3 * maxOwn {
		m.noteOwn([]command.Command{{ID: fmt.Sprint(i), Verb: command.SendMessage}})
		require.LessOrEqual(t, len(m.own), maxOwn)
	}
}

// TestLogOf: frames name sessions of the client's tenant, or the watched run by one of its names.
func TestLogOf(t *testing.T) {
	m := bound("")
	log, err := m.logOf("s1")
	require.NoError(t, err)
	require.Equal(t, session("s1"), log)
	_, err = m.logOf("no id")
	require.ErrorIs(t, err, fault.New(fault.SessionExpired))

	m.target = &binding.Target{Kind: id.KindTask, Name: "a task"}
	m.run = m.target.Log(id.DefaultTenant)
	for _, name := range []string{"a task", m.run.Entity.String()} {
		log, err = m.logOf(name)
		require.NoError(t, err)
		require.Equal(t, m.run, log)
	}
}
