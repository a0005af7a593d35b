//go:build nightly

package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// fleet is a cluster of three real servers with the files of deploy/nats, and with the addresses and folders of the test.
type fleet struct {
	t       *testing.T
	dir     string // holds etc/nats and run/secrets, as in a container
	ports   []int  // ports of clients, then of routes
	servers [3]*server.Server
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir(), ports: freeport.Ports(t, 6)}
	secrets := filepath.Join(f.dir, "run", "secrets")
	_, err := keys.Ensure(secrets)
	require.NoError(t, err)
	require.NoError(t, keys.EnsureRoutes(secrets, []string{"n0", "n1", "n2"}))
	for n := range 3 {
		f.replace("run/secrets/routes.conf", fmt.Sprintf("n%d:6222", n), fmt.Sprintf("127.0.0.1:%d", f.ports[3+n]))
	}
	public, err := os.ReadFile(keys.PublicFile(secrets))
	require.NoError(t, err)
	for line := range strings.Lines(string(public)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		t.Setenv(name, value)
	}
	t.Cleanup(func() {
		for n := range f.servers {
			f.kill(n)
		}
	})
	for n := range f.servers {
		f.start(n)
	}
	for _, s := range f.servers {
		require.True(t, s.ReadyForConnections(bustest.MaxWait))
	}
	return f
}

// replace changes a file of the fleet that holds the text once.
func (f *fleet) replace(file, from, to string) {
	f.t.Helper()
	name := filepath.Join(f.dir, file)
	text, err := os.ReadFile(name)
	require.NoError(f.t, err)
	require.Equal(f.t, 1, strings.Count(string(text), from), "%s in %s", from, file)
	require.NoError(f.t, os.WriteFile(name, []byte(strings.Replace(string(text), from, to, 1)), 0o600))
}

// start starts server n with its files.
func (f *fleet) start(n int) {
	f.t.Helper()
	etc := filepath.Join(f.dir, "etc", fmt.Sprint("n", n))
	require.NoError(f.t, os.MkdirAll(etc, 0o700))
	for _, name := range []string{"cluster.conf", "server.conf", "accounts.conf"} {
		text, err := os.ReadFile(filepath.Join("../../../deploy/nats", name))
		require.NoError(f.t, err)
		require.NoError(f.t, os.WriteFile(filepath.Join(etc, name), text, 0o600))
	}
	rel := fmt.Sprintf("etc/n%d/", n)
	f.replace(rel+"server.conf", `"0.0.0.0:4222"`, fmt.Sprintf(`"127.0.0.1:%d"`, f.ports[n]))
	f.replace(rel+"server.conf", `http: "0.0.0.0:8222"`, "")
	f.replace(rel+"server.conf", `"/data"`, fmt.Sprintf("%q", filepath.Join(f.dir, "data", fmt.Sprint("n", n))))
	f.replace(rel+"cluster.conf", `"0.0.0.0:6222"`, fmt.Sprintf(`"127.0.0.1:%d"`, f.ports[3+n]))
	f.t.Setenv("WAGGLE_NATS_NAME", fmt.Sprint("n", n))
	opts, err := server.ProcessConfigFile(filepath.Join(etc, "cluster.conf"))
	require.NoError(f.t, err)
	require.Equal(f.t, time.Second, opts.SyncInterval)
	opts.NoSigs, opts.NoLog, opts.SyncInterval = true, true, slowestSync // see bustest.SyncEvery
	s, err := server.NewServer(opts)
	require.NoError(f.t, err)
	s.Start()
	f.servers[n] = s
}

func (f *fleet) kill(n int) {
	if s := f.servers[n]; s != nil {
		s.Shutdown()
		s.WaitForShutdown()
		f.servers[n] = nil
	}
}

func (f *fleet) seed(r permission.Role) string {
	return keys.SeedFile(filepath.Join(f.dir, "run", "secrets"), r)
}

// patient returns an operator's Patient with the running servers.
func (f *fleet) patient(system string) Patient {
	var urls []string
	for n, s := range f.servers {
		if s != nil {
			urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", f.ports[n]))
		}
	}
	p := patient(f.t, "", map[string]string{
		"nats.url": strings.Join(urls, ","), "nats.nkey": f.seed(permission.Operator), "nats.replicas": "3",
	})
	p.SystemNKey = system
	return p
}

// findings repeats the examination until one has all these findings at their levels, and returns them.
func (f *fleet) findings(want map[string]Level) map[string]Finding {
	f.t.Helper()
	var got []Finding
	found := map[string]Finding{}
	require.Eventually(f.t, func() bool {
		got = bounded(f.t.Context(), f.patient(f.seed(permission.System)), busMaxWait, onBus)
		clear(found)
		for _, x := range got {
			if want[x.What] == x.Level {
				found[x.What] = x
			}
		}
		return len(found) == len(want)
	}, 2*bustest.MaxWait, 100*time.Millisecond, "%v: %v", want, &got)
	return found
}

// notMeta returns a server that does not lead JetStream.
func (f *fleet) notMeta() int {
	f.t.Helper()
	for n, s := range f.servers {
		if s != nil && !s.JetStreamIsLeader() {
			return n
		}
	}
	require.Fail(f.t, "no such server")
	return -1
}

// awaitNoMeta waits until the running servers know that none of them leads JetStream: until then an examination waits for
// answers to all its questions.
func (f *fleet) awaitNoMeta() {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		return !slices.ContainsFunc(f.servers[:], func(s *server.Server) bool { return s != nil && s.JetStreamIsLeader() })
	}, bustest.MaxWait, 100*time.Millisecond)
}

// The doctor examines a fleet as installed: with the wrong user, with JetStream disabled on one server as after a full disk,
// without one server, and without two.
func TestTheServersOfAFleet(t *testing.T) {
	f := newFleet(t)
	conn, err := bus.Connect(t.Context(), bus.Config{
		URL: f.patient("").Config.NATS.URL, Name: t.Name(), NKeySeedFile: f.seed(permission.Bootstrap), InboxPrefix: permission.Inbox(permission.Bootstrap),
	})
	require.NoError(t, err)
	top := bus.DefaultTopology()
	top.Replicas = 3
	require.NoError(t, bus.Bootstrap(t.Context(), conn, top))
	conn.Close()

	whole := f.findings(map[string]Level{"NATS servers": OK, "replicas": OK, "quotas": OK, "permissions": OK})
	require.Contains(t, whole["NATS servers"].Is, "n0 "+server.VERSION+", sync_interval 1s")
	require.Contains(t, whole["NATS servers"].Is, "the meta leader is n")
	require.Contains(t, whole["replicas"].Is, "3 copies of each stream, all current")
	require.Contains(t, whole["permissions"].Is, "may read everything")

	for _, stranger := range []permission.Role{permission.Operator, permission.Monitor} {
		got := servers(t.Context(), f.patient(f.seed(stranger)))[0]
		require.Equal(t, Fail, got.Level)
		require.Contains(t, got.Is, "does not belong to the NATS system account", stranger)
		require.Contains(t, got.Do, "system.nk")
	}

	ill := f.notMeta()
	require.NoError(t, f.servers[ill].ShutdownJetStream(), "what a server does whose disk is full")
	off := f.findings(map[string]Level{"NATS servers": Fail})["NATS servers"]
	require.Contains(t, off.Is, fmt.Sprintf("n%d %s, JetStream is switched off", ill, server.VERSION))
	require.Contains(t, off.Do, fmt.Sprintf("restart n%d", ill))
	f.kill(ill)
	away := f.findings(map[string]Level{"NATS servers": Fail, "replicas": Fail})
	require.Contains(t, away["NATS servers"].Is, fmt.Sprintf("2 of 3 servers answer; not there: n%d", ill))
	require.Contains(t, away["replicas"].Is, fmt.Sprintf("its copy on n%d", ill))
	f.start(ill)
	f.findings(map[string]Level{"NATS servers": OK, "replicas": OK})

	f.kill(ill)
	f.kill(f.notMeta())
	f.awaitNoMeta()
	alone := f.findings(map[string]Level{"NATS": Fail, "NATS servers": Fail})
	require.Contains(t, alone["NATS"].Do, "more than half of the servers")
	require.Contains(t, alone["NATS servers"].Is, "1 of 3 servers answer")
	require.Contains(t, alone["NATS servers"].Is, "no meta leader")
}
