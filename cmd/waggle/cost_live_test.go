package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// talk is a chat that asks one question after the other.
type talk struct {
	t    *testing.T
	conn *websocket.Conn
}

func (i *installation) talk(t *testing.T) *talk {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), i.ws, nil) //nolint:bodyclose // closed by the library
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
		if frame.Type == kind {
			return
		}
	}
}

func (c *talk) ask(question string) {
	c.t.Helper()
	raw, err := json.Marshal(map[string]string{"type": "user_message", "content": question})
	require.NoError(c.t, err)
	require.NoError(c.t, c.conn.Write(c.t.Context(), websocket.MessageText, raw))
	c.until("agent_response")
}

// spy counts the messages of the bus: those of runs, by their first tokens.
func (i *installation) spy(t *testing.T) func() map[string]int {
	t.Helper()
	key, err := nats.NkeyOptionFromSeed(i.seed(permission.Role("all")))
	require.NoError(t, err)
	nc, err := nats.Connect(i.nats, key)
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
				m, err := sub.NextMsg(patience)
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
	"$JS.API.STREAM.MSG.GET.": 1, // of the pipeline, before it decides about a message
	"$JS.API.DIRECT.GET.":     0,
	"timer.":                  0,
	"audit.":                  1,
	"rpc.":                    1, // the list of tools
}

// The gate of what a run costs the bus: the messages of an answer of one line in a session that has had others. On a busy
// machine announcements come late and are read from the log, so that the least of three rounds counts: the cost of runs is in all.
func TestGateMessagesOfARun(t *testing.T) {
	t.Parallel()
	const (
		rounds = 3
		runs   = 20
	)
	i := start(t)
	c := i.talk(t)
	c.ask("what is 2+3?")
	count := i.spy(t)
	least := map[string]int{}
	for round := range rounds {
		for range runs {
			c.ask("what is 2+3?")
		}
		got := count()
		t.Logf("round %d: %v", round, got)
		for family := range bounds {
			if n, ok := least[family]; !ok || got[family] < n {
				least[family] = got[family]
			}
		}
	}
	for family, most := range bounds {
		// Timers may cost half a message a run; one more in each run would be twice that.
		require.LessOrEqual(t, least[family], runs*most+runs/2, "%s: %v", family, least)
	}
}
