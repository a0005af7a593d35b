//go:build nightly

package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// TestTheSigningKeyIsRotatedWhilePeopleChat follows docs/OPERATIONS.md: add, switch, drop.
func TestTheSigningKeyIsRotatedWhilePeopleChat(t *testing.T) {
	g := startGuarded(t, "server.conf")
	g.run(permission.Bootstrap, "bootstrap")
	addr := g.serve()
	first, err := os.ReadFile(keys.SigningFile(g.keys))
	require.NoError(t, err)
	public, err := os.ReadFile(keys.SigningPublicFile(g.keys)) // of the first key
	require.NoError(t, err)
	var chats int
	var work sync.WaitGroup
	chatting, stop := context.WithCancel(t.Context())
	defer func() { stop(); work.Wait() }()
	work.Go(func() {
		t.Run("people chat", func(t *testing.T) { // a test of its own: a check may end its goroutine
			for ; chatting.Err() == nil; chats++ {
				askAndCheck(t, addr)
			}
		})
	})
	noted := func(step string, roles ...string) {
		public, err := os.ReadFile(keys.SigningPublicFile(g.keys))
		require.NoError(t, err)
		process.Eventually(t, "processes use the keys of "+step, func() bool {
			for _, role := range roles {
				for _, key := range strings.Fields(string(public)) {
					if !strings.Contains(g.running[role].Output(), key) {
						return false
					}
				}
			}
			return true
		})
	}
	require.NoError(t, keys.RotateSigning(g.keys, keys.SigningAdd))
	noted(keys.SigningAdd, config.Roles...)
	require.NoError(t, keys.RotateSigning(g.keys, keys.SigningSwitch))
	second, err := os.ReadFile(keys.SigningFile(g.keys))
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	process.Eventually(t, "the gateway signs with the other key", func() bool {
		return strings.Count(g.running[config.RoleGateway].Output(), "signing keys rotated") == 2
	})
	askAndCheck(t, addr)
	require.NoError(t, keys.RotateSigning(g.keys, keys.SigningDrop))
	process.Eventually(t, "services drop the first key", func() bool {
		said := g.running[config.RolePipeline].Output()
		at := strings.LastIndex(said, "signing keys rotated")
		line := said[strings.LastIndexByte(said[:at], '\n')+1:]
		line, _, whole := strings.Cut(line, "\n")
		return whole && !strings.Contains(line, strings.TrimSpace(string(public)))
	})
	askAndCheck(t, addr)
	stop()
	work.Wait()
	require.Positive(t, chats)
	operator, _ := g.dial(permission.Operator)
	nc, _ := g.dial(permission.Gateway)
	old, err := signature.NewSigner([]byte(strings.TrimSpace(string(first))), nil)
	require.NoError(t, err)
	c := forgeries("s1")[0]
	require.NoError(t, old.Sign(&c))
	body, err := json.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, nc.Publish(subject.DefaultPartitions.Command(c.Address()), body))
	process.Eventually(t, "the dropped key signs nothing", func() bool { return deadOf(t, operator, "s1")[c.ID] != "" })
	gaveUp := func(role string) int { return strings.Count(g.running[role].Output(), "command dead-lettered") }
	process.Eventually(t, "the log shows the command with the dropped key", func() bool { return gaveUp(config.RolePipeline) == 1 })
	for role := range g.running {
		require.True(t, role == config.RolePipeline || gaveUp(role) == 0, role)
	}
}
