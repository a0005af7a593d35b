//go:build nightly

package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// TestServicesWaitForTheStreams: processes that may not create streams wait for the
// bootstrap, and are ready then.
func TestServicesWaitForTheStreams(t *testing.T) {
	g := startGuarded(t, "server.conf")
	first := process.Start(t, process.Options{
		Name: "session", Dir: g.dir, Env: append(g.as(permission.Session), "WAGGLE_ADDR="+freeport.Addr(t)),
		Args: []string{"serve", "--role", "session"},
	})
	process.Eventually(t, "it says what it waits for", func() bool {
		return strings.Contains(first.Output(), "waiting for streams")
	})
	g.run(permission.Bootstrap, "bootstrap")
	askAndCheck(t, g.serve())
	require.Empty(t, g.log.all())
}
