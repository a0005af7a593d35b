package rates

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/api"
)

// running starts a process with a connection of its own.
func running(t *testing.T, url string) counted {
	t.Helper()
	c := newCounted(bustest.Dial(t, url))
	require.NoError(t, c.Start(t.Context()))
	t.Cleanup(c.Stop)
	require.NoError(t, c.conn.Flush(t.Context()))
	return c
}

func named(conn *bus.Conn, roles ...string) api.RateProcess {
	return api.RateProcess{Instance: conn.Instance(), Roles: roles}
}

func TestTheRatesOfAFleet(t *testing.T) {
	url, _ := bustest.Server(t)
	gateway, worker := running(t, url), running(t, url)
	self, other := named(gateway.conn, "gateway"), named(worker.conn, "worker", "tools")
	silent := api.RateProcess{Instance: "silent", Roles: []string{"team"}}
	gateway.frames.Add(10)
	worker.models.WithLabelValues("m").Observe(0.2)
	later := time.Now().Add(Every)
	for _, c := range []counted{gateway, worker} {
		c.now = func() time.Time { return later }
		c.take()
	}

	l := NewFleet(gateway.Rates, self, func() []api.RateProcess { return []api.RateProcess{self, other} }).List()
	require.Equal(t, self.Instance, l.Gateway)
	require.Equal(t, []api.RateProcess{self, other}, l.Processes)
	require.Empty(t, l.Missing)
	require.Equal(t, 5, l.Seconds)
	require.True(t, l.TakenAt.Equal(later))
	require.InDelta(t, 2, rateOf(t, l.Rates, "messages").Recent, 0.01)
	require.InDelta(t, 0.2, rateOf(t, l.Rates, "models").Recent, 0.01, "the worker's")
	require.InDelta(t, 175, rateOf(t, l.Rates, "models").P50, 0.01)

	// A process that does not answer is named, and the others wait for it no longer than they should. Malformed answers do no harm.
	sub, err := worker.conn.NATS().Subscribe(request, func(m *nats.Msg) {
		for _, body := range []string{"", "null", "{", `{"instance":"silent","took":[-1]}`, `{"instance":"of nobody","took":[1]}`, string(make([]byte, 1<<20))} {
			require.NoError(t, m.Respond([]byte(body)))
		}
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, sub.Unsubscribe()) }()
	require.NoError(t, worker.conn.Flush(t.Context()))
	l = NewFleet(gateway.Rates, self, func() []api.RateProcess { return []api.RateProcess{silent, other} }).List()
	require.Equal(t, []api.RateProcess{self, other}, l.Processes, "the directory need not have the gateway yet")
	require.Equal(t, []api.RateProcess{silent}, l.Missing)
	require.InDelta(t, 0.2, rateOf(t, l.Rates, "models").Recent, 0.01)
}

// Many tabs that ask at once make one request of the bus.
func TestOneLookForAll(t *testing.T) {
	url, _ := bustest.Server(t)
	gateway, worker := running(t, url), running(t, url)
	asked, err := worker.conn.NATS().SubscribeSync(request)
	require.NoError(t, err)
	require.NoError(t, worker.conn.Flush(t.Context()))
	f := NewFleet(gateway.Rates, named(gateway.conn), func() []api.RateProcess { return []api.RateProcess{named(worker.conn)} })
	lists := make([]api.RateList, 20)
	var all sync.WaitGroup
	for i := range lists {
		all.Go(func() { lists[i] = f.List() })
	}
	all.Wait()
	for _, l := range lists {
		require.Equal(t, lists[0], l)
		require.Len(t, l.Processes, 2)
	}
	require.NoError(t, worker.conn.Flush(t.Context()))
	n, _, err := asked.Pending()
	require.NoError(t, err)
	require.Equal(t, 1, n)
	f.at = f.at.Add(-goodFor)
	f.List()
	_, err = asked.NextMsg(bustest.MaxWait)
	require.NoError(t, err)
	_, err = asked.NextMsg(bustest.MaxWait)
	require.NoError(t, err, "a later look asks again")
}

// A process alone asks no other one, and without a connection those that cannot be asked are missing at once.
func TestRatesWithoutOthers(t *testing.T) {
	i := bustest.Start(t, bus.DefaultTopology())
	c := running(t, i.URL)
	self := named(c.conn, "gateway")
	alone := NewFleet(c.Rates, self, func() []api.RateProcess { return []api.RateProcess{self} }).List()
	require.Equal(t, []api.RateProcess{self}, alone.Processes)
	require.Equal(t, []api.RateProcess{}, alone.Missing)

	lost := make(chan struct{})
	defer c.conn.Watch(func(up bool) {
		if !up {
			close(lost)
		}
	})()
	i.Stop()
	<-lost
	var others []api.RateProcess
	for n := range 3 {
		others = append(others, api.RateProcess{Instance: fmt.Sprint("gone-", n), Roles: []string{"worker"}})
	}
	l := NewFleet(c.Rates, self, func() []api.RateProcess { return others }).List()
	require.Equal(t, others, l.Missing)
	require.Equal(t, []api.RateProcess{self}, l.Processes)
}
