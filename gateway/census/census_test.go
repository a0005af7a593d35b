package census

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// at returns a connection that was opened minutes ago, whose viewers lag since so many minutes; 0 = one does not lag.
func at(name string, opened int, lags ...int) wire.Connection {
	c := wire.Connection{ID: name, Since: now.Add(-time.Duration(opened) * time.Minute), Watches: []wire.Watch{}}
	for i, lag := range lags {
		w := wire.Watch{Log: fmt.Sprintf("session/%d", i)}
		if lag > 0 {
			w.Reason, w.Lagging, c.Lagging = "queue_full", now.Add(-time.Duration(lag)*time.Minute), true
		}
		c.Watches = append(c.Watches, w)
	}
	return c
}

// of returns a census of a gateway with connections.
func of(t *testing.T, url, name string, gateways []string, own ...wire.Connection) *Census {
	t.Helper()
	c := New(Config{
		Conn: bustest.Dial(t, url), Name: name, Clock: func() time.Time { return now },
		Own:      func(cmd.ConnectionsRequest) []wire.Connection { return append([]wire.Connection{}, own...) },
		Gateways: func() []string { return gateways },
	})
	require.NoError(t, c.Start())
	t.Cleanup(c.Stop)
	require.NoError(t, c.Conn.Flush(t.Context()))
	return c
}

func ids(l []wire.Connection) (out []string) {
	for _, c := range l {
		out = append(out, c.ID)
	}
	return out
}

func TestTheLongestLagComesFirst(t *testing.T) {
	url, _ := bustest.Server(t)
	all := []string{"a", "b"}
	a := of(t, url, "a", all, at("old", 9, 0), at("lag-2", 1, 0, 2), at("new", 1))
	of(t, url, "b", all, at("lag-1", 5, 1), at("middle", 5, 0), at("lag-3", 1, 3, 1))
	q := cmd.ConnectionsRequest{Tenant: id.DefaultTenant, Limit: 5}
	l, err := a.List(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, []string{"lag-3", "lag-2", "lag-1", "new", "middle"}, ids(l.Connections))
	require.Equal(t, 6, l.Total)
	require.Equal(t, "session/1", l.Connections[1].Watches[0].Log, "the viewer that lags comes first")
	require.Empty(t, l.Missing)

	q.Lagging = true
	l, err = a.List(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, []string{"lag-3", "lag-2", "lag-1"}, ids(l.Connections))
	require.Equal(t, 3, l.Total)
	q.Gateway = "b"
	l, err = a.List(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, []string{"lag-3", "lag-1"}, ids(l.Connections))
}

// An answer is bounded in connections, viewers and bytes, and counts all connections.
func TestAnAnswerIsBounded(t *testing.T) {
	url, _ := bustest.Server(t)
	var many []wire.Connection
	for i := range 1000 {
		c := at(fmt.Sprint(i), i, make([]int, 300)...)
		c.Principal = strings.Repeat("p", 1000)
		many = append(many, c)
	}
	a := of(t, url, "a", []string{"b"})
	of(t, url, "b", nil, many...)
	l, err := a.List(t.Context(), cmd.ConnectionsRequest{Tenant: id.DefaultTenant, Limit: 1000})
	require.NoError(t, err)
	require.Empty(t, l.Missing)
	require.Equal(t, 1000, l.Total)
	text, err := json.Marshal(l.Connections)
	require.NoError(t, err)
	require.Greater(t, len(text), maxAnswer/2)
	require.Less(t, len(text), maxAnswer+1000)
	require.Equal(t, "0", l.Connections[0].ID, "the newest")
	require.Len(t, l.Connections[0].Watches, maxWatches)
	require.Equal(t, 300-maxWatches, l.Connections[0].More)
}

// Malformed answers, and those of gateways that were not asked, do no harm. A gateway that does not answer is named.
func TestOthersThatAnswer(t *testing.T) {
	url, _ := bustest.Server(t)
	a, other := of(t, url, "a", []string{"a", "b", "silent"}), bustest.Dial(t, url)
	of(t, url, "b", nil, at("one", 1))
	sub, err := other.NATS().Subscribe(request, func(m *nats.Msg) {
		for _, body := range []string{"", "{", "[]", `{"gateway":"stranger","total":5,"connections":[{"id":"x"}]}`, `{"gateway":"silent","total":"x"}`} {
			require.NoError(t, m.Respond([]byte(body)))
		}
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, sub.Unsubscribe()) }()
	require.NoError(t, other.Flush(t.Context()))
	l, err := a.List(t.Context(), cmd.ConnectionsRequest{Tenant: id.DefaultTenant, Limit: 10})
	require.NoError(t, err)
	require.Equal(t, []string{"one"}, ids(l.Connections))
	require.Equal(t, 1, l.Total)
	require.Equal(t, []string{"silent"}, l.Missing)

	// A request that is malformed has no answer, and one without a limit has no connections.
	for body, want := range map[string]string{"{": "", `{"gateway":"c"}`: "", `{"gateway":"b"}`: `{"gateway":"b","total":1,"connections":null}`} {
		inbox := other.NATS().NewInbox()
		got, err := other.NATS().SubscribeSync(inbox)
		require.NoError(t, err)
		require.NoError(t, sub.Unsubscribe())
		require.NoError(t, other.NATS().PublishRequest(request, inbox, []byte(body)))
		require.NoError(t, other.NATS().PublishRequest(request, inbox, []byte(`{"gateway":"a"}`)), "its answer comes in any case")
		var answers []string
		for m := range 2 {
			msg, err := got.NextMsg(bustest.MaxWait)
			require.NoError(t, err, m)
			answers = append(answers, string(msg.Data))
			if want == "" {
				break
			}
		}
		if want != "" {
			require.Contains(t, answers, want)
		} else {
			require.Equal(t, []string{`{"gateway":"a","total":0,"connections":null}`}, answers)
		}
		sub, err = other.NATS().Subscribe(request, func(*nats.Msg) {})
		require.NoError(t, err)
	}
}
