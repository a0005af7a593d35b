package remote

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/tools"
)

// impatient returns a client with short limits.
func impatient(t *testing.T) (*client, *nats.Conn) {
	t.Helper()
	conn := bustest.Single(t)
	c := newClient(rpc.Caller{
		Conn: conn, Service: tools.ServiceName, Verbs: verbsOfCalls,
		Silence: 200 * time.Millisecond, Look: 10 * time.Millisecond, CancelWait: 200 * time.Millisecond,
	})
	return c, conn.NATS()
}

// answer answers calls in place of a service.
func answer(t *testing.T, nc *nats.Conn, f func(m *nats.Msg)) {
	t.Helper()
	_, err := nc.Subscribe(subject.RPC(tools.ServiceName, verbsOfCalls.Begin), f)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
}

var aCall = tools.Call{ID: "1", Tenant: id.DefaultTenant, Tool: "x_y"}

func TestWithoutAServiceNothingRuns(t *testing.T) {
	t.Parallel()
	c := NewClient(bustest.Single(t))
	_, err := c.Call(t.Context(), aCall)
	require.ErrorIs(t, err, fault.New(fault.ToolsDown))
	_, err = c.List(t.Context(), id.DefaultTenant)
	require.ErrorIs(t, err, fault.New(fault.ToolsDown))
}

func TestTheCallOfASilentServiceIsLost(t *testing.T) {
	t.Parallel()
	c, nc := impatient(t)
	answer(t, nc, func(*nats.Msg) {})
	_, err := c.Call(t.Context(), aCall)
	require.ErrorIs(t, err, fault.New(fault.ToolLost))
}

func TestAnUnconfirmedCancellationLosesTheCall(t *testing.T) {
	t.Parallel()
	c, nc := impatient(t)
	c.calls.Silence = bustest.MaxWait
	answer(t, nc, func(*nats.Msg) {})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err := c.Call(ctx, aCall)
	require.ErrorIs(t, err, fault.New(fault.ToolLost))
	require.ErrorContains(t, err, "was cancelled")
}

func TestAnOutcomeThatCannotBeReadLosesTheCall(t *testing.T) {
	t.Parallel()
	c, nc := impatient(t)
	bodies := make(chan string, 1)
	answer(t, nc, func(m *nats.Msg) { require.NoError(t, m.Respond([]byte(<-bodies))) })
	for _, body := range []string{"{", "[]", "null", "7"} {
		bodies <- body
		_, err := c.Call(t.Context(), aCall)
		require.ErrorIs(t, err, fault.New(fault.ToolLost), body)
	}
}

func TestTooLargeArgumentsAreBadInput(t *testing.T) {
	t.Parallel()
	c, nc := impatient(t)
	answer(t, nc, func(*nats.Msg) {})
	call := aCall
	call.Arguments = []byte(`"` + strings.Repeat("x", 2<<20) + `"`)
	_, err := c.Call(t.Context(), call)
	require.ErrorIs(t, err, fault.New(fault.ToolBadInput))
}
