package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// startForCost starts an installation whose chats may ask as fast as they are answered.
func startForCost(t testing.TB) *installation {
	t.Helper()
	file := filepath.Join(t.TempDir(), "waggle.yaml")
	require.NoError(t, os.WriteFile(file, []byte("gateway: {message_rate: 100000}\n"), 0o600))
	return start(t, "--config", file)
}

// talk is a chat that asks one question after the other.
type talk struct {
	t    testing.TB
	conn *websocket.Conn
}

func (i *installation) talk(t testing.TB) *talk {
	t.Helper()
	return talkTo(t, i.ws)
}

// talkTo is talk for an address that says what the chat wants to see.
func talkTo(t testing.TB, url string) *talk {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), url, nil) //nolint:bodyclose // closed by the library
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() })
	c := &talk{t, conn}
	c.until("agent_ready")
	return c
}

func (c *talk) until(kind string) {
	c.t.Helper()
	for {
		_, raw, err := c.conn.Read(c.t.Context())
		require.NoError(c.t, err)
		var frame struct {
			Type string `json:"type"`
		}
		require.NoError(c.t, json.Unmarshal(raw, &frame))
		require.NotEqual(c.t, "error", frame.Type, "instead of %s: %s", kind, raw) // no other frame would follow
		if frame.Type == kind {
			return
		}
	}
}

func (c *talk) ask(question string) {
	c.t.Helper()
	c.send(question)
	c.until("agent_response")
}

func (c *talk) send(question string) {
	c.t.Helper()
	raw, err := json.Marshal(map[string]string{"type": "user_message", "content": question})
	require.NoError(c.t, err)
	require.NoError(c.t, c.conn.Write(c.t.Context(), websocket.MessageText, raw))
}

// spy counts the messages of the bus: those of runs, by their first tokens.
func (i *installation) spy(t *testing.T) func() map[string]int {
	t.Helper()
	key, err := nats.NkeyOptionFromSeed(i.seed(permission.Role("all")))
	require.NoError(t, err)
	nc, err := nats.Connect(i.nats, key, nats.Timeout(bustest.MaxWait))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	sub, err := nc.SubscribeSync(">")
	require.NoError(t, err)
	require.NoError(t, sub.SetPendingLimits(-1, -1))
	require.NoError(t, nc.Flush())
	return func() map[string]int {
		t.Helper()
		out := map[string]int{}
		for {
			require.NoError(t, nc.Flush())
			n, _, err := sub.Pending()
			require.NoError(t, err)
			if n == 0 {
				return out
			}
			for range n {
				m, err := sub.NextMsg(maxWait)
				require.NoError(t, err)
				out[family(m.Subject)]++
			}
		}
	}
}

// family names the kind of a message.
func family(subject string) string {
	for _, prefix := range []string{"evt.", "live.", "cmd.", "audit.", "$JS.ACK.", "$JS.API.STREAM.MSG.GET.", "$JS.API.DIRECT.GET.", "rpc.", "timer."} {
		if strings.HasPrefix(subject, prefix) {
			return prefix
		}
	}
	return "other"
}

// bounds are the most messages of each family that one run may cost.
var bounds = map[string]int{
	"evt.":                    8, // received, started, claimed, message started, one or two deltas, message completed, run completed
	"live.":                   8,
	"cmd.":                    4, // send_message and do_job, published and delivered
	"$JS.ACK.":                2, // of these
	"$JS.API.STREAM.MSG.GET.": 0, // package ledger says why
	"$JS.API.DIRECT.GET.":     0,
	"timer.":                  0,
	"audit.":                  1,
	"rpc.":                    1, // the list of tools
}

// mostMallocs is the most allocations that one run may cost the process: gateway, services, worker and NATS server.
// Measured: 2,400, and 3,200 with the race detector.
const mostMallocs = 5000
