package remote

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/waggle-dev/waggle/services/tools"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// impatient returns a client with short limits for a test.
func impatient(t *testing.T) (*client, *nats.Conn) {
	t.Helper()
	conn := bustest.Single(t)
	return &client{conn: conn, silence: 2 * time.Second, look: 20 * time.Millisecond, cancelWait: 2 * time.Second}, conn.NATS()
}

// pretend answers a subject in place of a service, with f.
func pretend(t *testing.T, nc *nats.Conn, subj string, f func(m *nats.Msg)) {
	t.Helper()
	_, err := nc.Subscribe(subj, f)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
}

func say(t *testing.T, nc *nats.Conn, m *nats.Msg) {
	t.Helper()
	if err := nc.PublishMsg(m); err != nil {
		t.Error(err)
	}
}

func done(t *testing.T, to string, r reply) *nats.Msg {
	t.Helper()
	m, err := message(to, r, 1<<20)
	if err != nil {
		t.Error(err)
	}
	return m
}

var aCall = tools.Call{ID: "1", Tenant: id.DefaultTenant, Tool: "x_y"}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	c, _ := impatient(t)
	_, err := c.Call(t.Context(), aCall)
	require.ErrorIs(t, err, fault.New(fault.ToolsDown))
	_, err = c.List(t.Context(), id.DefaultTenant)
	require.ErrorIs(t, err, fault.New(fault.ToolsDown))
}

func TestAServiceThatFallsSilentHasLostTheCall(t *testing.T) {
	t.Parallel()
	c, nc := impatient(t)
	pretend(t, nc, callSubject, func(m *nats.Msg) { say(t, nc, busy(m.Reply)) })
	_, err := c.Call(t.Context(), aCall)
	require.ErrorIs(t, err, fault.New(fault.ToolLost))
}

func TestAServiceThatKeepsTalkingIsWaitedFor(t *testing.T) {
	t.Parallel()
	c, nc := impatient(t)
	pretend(t, nc, callSubject, func(m *nats.Msg) {
		go func() {
			tick := time.NewTicker(200 * time.Millisecond)
			defer tick.Stop()
			for range 20 {
				<-tick.C
				say(t, nc, busy(m.Reply))
			}
			say(t, nc, done(t, m.Reply, reply{Result: &tools.Result{Text: "at last"}}))
		}()
	})
	res, err := c.Call(t.Context(), aCall)
	require.NoError(t, err)
	require.Equal(t, "at last", res.Text)
}

// The client asks again for an answer that was lost.
func TestALostAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	c, nc := impatient(t)
	pretend(t, nc, callSubject, func(m *nats.Msg) { say(t, nc, busy(m.Reply)) })
	pretend(t, nc, attachSubject, func(m *nats.Msg) {
		say(t, nc, done(t, m.Reply, reply{Result: &tools.Result{Text: "again"}}))
	})
	res, err := c.Call(t.Context(), aCall)
	require.NoError(t, err)
	require.Equal(t, "again", res.Text)
}

func TestACancellationThatIsNotConfirmed(t *testing.T) {
	t.Parallel()
	c, nc := impatient(t)
	asked := make(chan struct{}, 1000)
	pretend(t, nc, callSubject, func(m *nats.Msg) { say(t, nc, busy(m.Reply)) })
	pretend(t, nc, cancelSubject, func(*nats.Msg) { asked <- struct{}{} })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Call(ctx, aCall)
	require.ErrorIs(t, err, fault.New(fault.ToolLost))
	require.Greater(t, len(asked), 2, "a cancellation is repeated: it may get lost")
}

func TestAnswersThatMakeNoSense(t *testing.T) {
	t.Parallel()
	c, nc := impatient(t)
	answers := make(chan []byte, 10)
	pretend(t, nc, callSubject, func(m *nats.Msg) {
		r := nats.NewMsg(m.Reply)
		r.Header.Set(headerState, stateDone)
		r.Data = <-answers
		say(t, nc, r)
	})
	for _, body := range []string{"", "{", "[]", "{}", `{"result":7}`} {
		answers <- []byte(body)
		_, err := c.Call(t.Context(), aCall)
		var f *fault.Fault
		require.ErrorAs(t, err, &f, body)
	}
}

func TestArgumentsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	c, nc := impatient(t)
	pretend(t, nc, callSubject, func(*nats.Msg) {})
	call := aCall
	call.Arguments = []byte(`"` + strings.Repeat("x", 2<<20) + `"`)
	_, err := c.Call(t.Context(), call)
	require.ErrorIs(t, err, fault.New(fault.ToolBadInput))
}
