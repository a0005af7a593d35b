//go:build nightly

package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// TestRolesOfAnInstallationWithManyPartitions: with 64 partitions each role has the rights that "waggle keys --partitions"
// writes for it, uses no others, and logs are spread over all streams. A process with another number does not start.
func TestRolesOfAnInstallationWithManyPartitions(t *testing.T) {
	const n, setting = subject.Partitions(64), "WAGGLE_NATS_PARTITIONS="
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "deploy", "nats"))))
	require.NoError(t, os.Remove(filepath.Join(dir, "accounts.conf")))
	p := process.Start(t, process.Options{Name: "keys", Args: []string{"keys", "--dir", dir, "--partitions", "64"}})
	require.NoError(t, p.Wait(), p.Output())
	g := startGuardedWith(t, filepath.Join(dir, "server.conf"), setting+"64")
	g.run(permission.Bootstrap, "bootstrap")
	addr := g.serve()
	for range 8 {
		askAndCheck(t, addr)
	}
	guardedSwarm(t, g.dir, addr)
	guardedTeam(t, g, addr)
	g.run(permission.Operator, "doctor", "--addr", addr)
	require.Greater(t, used(t, g, n), int(subject.DefaultPartitions), "streams with events")
	require.Empty(t, g.log.all(), "the server refused something")

	g.env = append(g.env, setting+"16") // only the role tools uses no partition
	for role, args := range map[permission.Role][]string{
		permission.Bootstrap: {"bootstrap"}, permission.Worker: {"serve", "--role", "worker"}, permission.Task: {"serve", "--role", "task"},
	} {
		p := process.Start(t, process.Options{Name: args[0], Dir: g.dir, Env: g.as(role), Args: args})
		require.Error(t, p.Wait(), role)
		require.Contains(t, p.Output(), "set nats.partitions to 64", role)
	}
}

// used returns the number of event streams that hold messages.
func used(t *testing.T, g *guarded, n subject.Partitions) (count int) {
	t.Helper()
	nc, _ := g.dial(permission.Operator)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), process.MaxWait)
	defer cancel()
	for _, p := range n.All() {
		s, err := js.Stream(ctx, p.EventStream())
		require.NoError(t, err)
		if s.CachedInfo().State.Msgs > 0 {
			count++
		}
	}
	return count
}

// TestUpWithTheMostPartitions: a laptop's installation with 256 partitions serves clients, and its sessions outlive a restart. A
// start or a restored backup with another number is refused, and nothing is lost.
func TestUpWithTheMostPartitions(t *testing.T) {
	dir, addr := t.TempDir(), freeport.Addr(t)
	data, bus := filepath.Join(dir, "data"), freeport.Addr(t)
	options := func(name, n string, args ...string) process.Options {
		return process.Options{Name: name, Dir: dir, Env: []string{"WAGGLE_NATS_PARTITIONS=" + n}, Args: args}
	}
	start := func(n string) *process.Process {
		return process.Start(t, options("up", n, "up", "--addr", addr, "--nats-addr", bus, "--data", data))
	}
	p := start("256")
	p.Ready(addr)
	askAndCheck(t, addr)
	c := client.DialOrbit(t, "ws://"+addr+"/ws")
	session := c.Until("agent_ready").Data.SessionID
	c.Ask(question)
	c.Until("agent_response")
	backup := filepath.Join(t.TempDir(), "backup")
	b := process.Start(t, options("backup", "256", "backup", "--nats", "nats://"+bus, "--data", data, "--out", backup))
	require.NoError(t, b.Wait(), b.Output())
	require.NoError(t, p.Terminate())

	other := start("64")
	require.Error(t, other.Wait())
	require.Contains(t, other.Output(), "set nats.partitions to 256")

	p = start("256")
	p.Ready(addr)
	c = client.DialOrbit(t, "ws://"+addr+"/ws?after=0&session="+session)
	require.Contains(t, c.Until("agent_response").Data.Message, "Welcome to your workspace")
	r := process.Start(t, options("restore", "16", "restore", "--force", "--nats", "nats://"+bus, "--data", data, "--from", backup))
	require.Error(t, r.Wait())
	require.Contains(t, r.Output(), "set nats.partitions to 256")
}
