//go:build nightly

package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestLongTextsAreCutOrRefusedNeverLost: what does not fit into an event is refused
// with a reason, or cut and said to be.
func TestLongTextsAreCutOrRefusedNeverLost(t *testing.T) {
	f := newFleet(t, scripted.Always(scripted.Stream(scripted.Text(repeat(strings.Repeat("<", 1000), 100)...))))
	f.serve("session,pipeline,worker,tools")
	_, addr := f.gateway()
	c := client.DialOrbit(t, "ws://"+addr+"/ws")
	c.Until("agent_ready")
	for _, long := range []string{strings.Repeat("x", 200_000), strings.Repeat("<", 30_000)} {
		c.Ask(long)
		require.Contains(t, c.Until("error", "agent_response").Data.Message, "too long")
	}
	c.Ask(strings.Repeat("x", 150_000))
	answer := c.Until("error", "agent_response").Data.Message
	require.Greater(t, len(answer), 20_000)
	require.Less(t, len(answer), 100_000, "cut where the event is full: every < takes six bytes")
	c.Ask("still there?")
	c.Until("agent_response")
}
