//go:build compose

package compose_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// TestEveryComposeRunsTheFleet: each Compose of this machine starts the file, adds
// gateways to it, runs the doctor, ends it, and finds its data again at the next start.
func TestEveryComposeRunsTheFleet(t *testing.T) {
	for _, tool := range tools(t) {
		t.Run(strings.Join(tool, " "), func(t *testing.T) {
			f := start(t, tool)
			d := f.talk(0)
			d.Once()
			f.more([]*verify.Conversation{d})
			d.Once()
			f.compose("run", "--rm", "-T", "operator", "doctor", "--system-nkey", "/run/secrets/system.nk")
			f.quiet(t)
			seen, raw := d.Seq(), d.Raw()
			f.compose("down", "--timeout", "40")
			require.Empty(t, f.compose("ps", "-q"))

			f.up()
			late := client.OpenMyAgent(t, sdk.Options{URL: f.url("/ws/session"), Token: f.token, Session: d.Session()})
			late.UntilSeq(seen)
			require.True(t, slices.Equal(raw, late.Raw()[:len(raw)]), "the session is not what it was")
			d.Once()
		})
	}
}
