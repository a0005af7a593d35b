package forward_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/forward"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/cell"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

const maxWait = 60 * time.Second

var a, b = id.MustName("a"), id.MustName("b")

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	t.Cleanup(cancel)
	return ctx
}

func tenant(t testing.TB, s string) id.Tenant {
	t.Helper()
	out, err := id.ParseTenant(s)
	require.NoError(t, err)
	return out
}

func open(t testing.TB, url string, usual id.Name) *cell.Directory {
	t.Helper()
	d, err := cell.Open(within(t), bustest.Dial(t, url), usual)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// gateway is a server that forwards, or answers with the name of its cell and the header of the request.
type gateway struct {
	*forward.Forwarder

	url  string
	hits atomic.Int64
	head atomic.Pointer[http.Request]

	mu      sync.Mutex
	retired []id.Tenant
	told    chan struct{} // holds one signal: retired has more
}

func start(t testing.TB, d *cell.Directory, own id.Name, instance string) *gateway {
	t.Helper()
	g := &gateway{told: make(chan struct{}, 1)}
	red := tenant(t, "red")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.hits.Add(1)
		g.head.Store(r)
		to, here, err := g.Aim(red, r.Header.Get(forward.HeaderCell) != "")
		var f *fault.Fault
		switch {
		case errors.As(err, &f):
			_ = answer.Fault(w, f)
		case here:
			_, _ = io.WriteString(w, own.String())
		default:
			g.Serve(w, r, to)
		}
	}))
	t.Cleanup(srv.Close)
	g.url = srv.URL
	g.Forwarder = forward.New(forward.Config{
		Directory: d, Cell: own, URL: srv.URL, Stall: maxWait, Logger: zerolog.Nop(),
		Refuse: func(w http.ResponseWriter, f *fault.Fault) { _ = answer.Fault(w, f) },
	})
	require.NoError(t, g.Start(within(t), id.MustName(instance), func(all []id.Tenant) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.retired = append(g.retired, all...)
		select {
		case g.told <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(g.Stop)
	return g
}

// await waits until a cell has n gateways.
func await(t testing.TB, d *cell.Directory, of id.Name, n int) {
	t.Helper()
	require.NoError(t, d.WaitGateways(within(t), of, func(all []cell.Gateway) bool { return len(all) == n }))
}

// get sends a request to a gateway.
func (g *gateway) get(t testing.TB, head http.Header) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(within(t), http.MethodGet, g.url+"/x?y=z", http.NoBody)
	require.NoError(t, err)
	r.Header, r.Host = head, "chat.example.com"
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode, string(text)
}

// TestARequestTravelsWithItsClient: its host, its address and its credentials; the words of a stranger about addresses do not.
func TestARequestTravelsWithItsClient(t *testing.T) {
	url := bustest.Start(t, bus.DefaultTopology()).URL
	d := open(t, url, b)
	near, far := start(t, d, a, "g1"), start(t, open(t, url, b), b, "g2")
	await(t, d, b, 1)
	status, body := near.get(t, http.Header{
		"Authorization": {"Bearer x"}, "X-Forwarded-For": {"203.0.113.9"}, "Forwarded": {"for=203.0.113.9"},
	})
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "b", body)
	got := far.head.Load()
	require.Equal(t, "chat.example.com", got.Host)
	require.Equal(t, "/x?y=z", got.URL.String())
	require.Equal(t, "Bearer x", got.Header.Get("Authorization"))
	require.Equal(t, []string{"127.0.0.1"}, got.Header.Values("X-Forwarded-For"))
	require.Equal(t, []string{"for=127.0.0.1"}, got.Header.Values("Forwarded"))
	require.Equal(t, "b", got.Header.Get(forward.HeaderCell))
}

// TestNoRequestGoesInACircle: each of two gateways believes that the other's cell serves the tenant.
func TestNoRequestGoesInACircle(t *testing.T) {
	url := bustest.Start(t, bus.DefaultTopology()).URL
	d := open(t, url, b)
	near, far := start(t, d, a, "g1"), start(t, open(t, url, a), b, "g2")
	await(t, d, b, 1)
	status, body := near.get(t, nil)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "TENANT_MOVING")
	require.EqualValues(t, 2, near.hits.Load()+far.hits.Load())
}

// TestAGatewayThatIsGoneIsPassedOver, and without any other the client learns when to try again.
func TestAGatewayThatIsGoneIsPassedOver(t *testing.T) {
	url := bustest.Start(t, bus.DefaultTopology()).URL
	d := open(t, url, b)
	near := start(t, d, a, "g1")
	status, body := near.get(t, nil)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "CELL_UNAVAILABLE")
	_, err := open(t, url, b).Join(within(t), b, id.MustName("dead"), "http://127.0.0.1:1")
	require.NoError(t, err)
	start(t, open(t, url, b), b, "g2")
	await(t, d, b, 2)
	for range 4 {
		status, body = near.get(t, nil)
		require.Equal(t, http.StatusOK, status, body)
	}
}

// TestAMoveIsReportedWhenTheGuestsHaveLeft: from the move on none enters, those inside continue, and the last one's end is the
// report.
func TestAMoveIsReportedWhenTheGuestsHaveLeft(t *testing.T) {
	url := bustest.Start(t, bus.DefaultTopology()).URL
	d := open(t, url, a)
	g := start(t, open(t, url, a), a, "g1")
	red, blue := tenant(t, "red"), tenant(t, "blue")
	leaveRed, err := g.Enter(red)
	require.NoError(t, err)
	again, err := g.Enter(red)
	require.NoError(t, err)
	leaveBlue, err := g.Enter(blue)
	require.NoError(t, err)
	p, err := d.Begin(within(t), red, b)
	require.NoError(t, err)
	select {
	case <-g.told:
	case <-within(t).Done():
		require.FailNow(t, "no tenant is retired")
	}
	_, err = g.Enter(red)
	var f *fault.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, fault.TenantMoving, f.Code)
	leaveRed()
	leaveRed() // counts once
	require.NoError(t, d.WaitGateways(within(t), a, func(all []cell.Gateway) bool { return len(all) == 1 }))
	require.Less(t, d.Gateways(a)[0].Seen, p.Revision)
	command, err := g.Continue(red)
	require.NoError(t, err, "a command of the guest that is left")
	again()
	further, err := g.Continue(red)
	require.NoError(t, err)
	command()
	require.Less(t, d.Gateways(a)[0].Seen, p.Revision)
	further()
	_, err = g.Continue(red)
	require.ErrorAs(t, err, &f)
	require.Equal(t, fault.TenantMoving, f.Code)
	require.NoError(t, d.WaitGateways(within(t), a, func(all []cell.Gateway) bool { return len(all) == 1 && all[0].Seen >= p.Revision }))
	leaveBlue()
	g.mu.Lock()
	require.Contains(t, g.retired, red)
	require.NotContains(t, g.retired, blue)
	g.mu.Unlock()
	_, here, err := g.Aim(red, false)
	require.False(t, here)
	require.ErrorAs(t, err, &f)
	_, err = d.Finish(within(t), red, p)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		to, here, err := g.Aim(red, false)
		return err == nil && !here && to == b
	}, maxWait, time.Millisecond)
}
