package worker_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// The end of a chat run is reported if a message waits, which the pipeline then begins to answer, and otherwise not.
func TestTheEndIsReportedIfAMessageWaits(t *testing.T) {
	r := newRig(t, scripted.Always(scripted.Stream(scripted.Text("hello"))))
	sub, err := r.Conn.NATS().SubscribeSync("cmd.pipeline.>")
	require.NoError(t, err)
	require.NoError(t, r.Conn.NATS().Flush())
	first, second := r.ask("first"), r.ask("second")
	r.Until(r.ref, event.MessageReceived, 2)
	r.worker("w1", nil)
	r.until(first, event.RunCompleted)
	r.until(second, event.RunCompleted)
	r.idle() // the worker has decided what follows from the end
	third := r.ask("third")
	r.until(third, event.RunCompleted)
	r.idle()
	fourth := r.ask("fourth")
	r.until(fourth, event.RunCompleted)
	r.idle()

	var reported []string
	require.NoError(t, r.Conn.NATS().Flush())
	n, _, err := sub.Pending()
	require.NoError(t, err)
	for range n {
		m, err := sub.NextMsg(maxWait)
		require.NoError(t, err)
		var c cmd.Command
		require.NoError(t, json.Unmarshal(m.Data, &c))
		if c.Verb == cmd.SettleJob && !strings.HasPrefix(m.Reply, "$JS.ACK.") { // a delivery is not counted
			reported = append(reported, c.ID)
		}
	}
	require.Equal(t, []string{first + ".ended"}, reported)
}
