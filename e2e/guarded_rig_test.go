package e2e_test

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// guarded is an installation as it is deployed: a NATS server with the configuration of
// deploy/nats, where each role is a user of its own, and a process for each role.
type guarded struct {
	t    testing.TB
	url  string
	keys string // folder
	dir  string // workspace and configuration
	env  []string
	log  *refusals

	running map[string]*process.Process // by role
}

// startGuarded starts the server of a configuration file of deploy/nats, with new keys,
// and makes the streams.
func startGuarded(t testing.TB, file string, env ...string) *guarded {
	t.Helper()
	return startGuardedWith(t, filepath.Join("..", "deploy", "nats", file), env...)
}

// startGuardedWith starts the server of a configuration file.
func startGuardedWith(t testing.TB, file string, env ...string) *guarded {
	t.Helper()
	g := &guarded{t: t, keys: filepath.Join(t.TempDir(), "keys"), dir: t.TempDir(), env: env, log: &refusals{}}
	g.makeKeys()
	t.Setenv("WAGGLE_NATS_NAME", "e2e")
	opts, err := server.ProcessConfigFile(file)
	require.NoError(t, err)
	g.url = g.startServer(opts).ClientURL()
	return g
}

// makeKeys makes the keys of all roles, and puts the public ones into the environment.
func (g *guarded) makeKeys() {
	g.t.Helper()
	_, err := keys.Ensure(g.keys)
	require.NoError(g.t, err)
	for _, role := range keys.Roles() {
		seed, err := os.ReadFile(keys.SeedFile(g.keys, role))
		require.NoError(g.t, err)
		process.Secret("the key of "+string(role), strings.TrimSpace(string(seed)))
	}
	publicKeys(g.t, g.keys)
}

// startServer starts a server with the options, but on a loopback address and without the files of the deployment.
func (g *guarded) startServer(opts *server.Options) *server.Server {
	g.t.Helper()
	opts.Host, opts.HTTPPort = "127.0.0.1", 0
	if opts.StoreDir == "/data" {
		opts.Port, opts.StoreDir = -1, g.t.TempDir()
	}
	opts.NoSigs, opts.NoLog, opts.SyncInterval = true, true, time.Hour // see bustest.SyncEvery
	s, err := server.NewServer(opts)
	require.NoError(g.t, err)
	s.SetLoggerV2(g.log, false, false, false)
	s.Start()
	g.t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	require.True(g.t, s.ReadyForConnections(process.MaxWait))
	return s
}

// publicKeys puts the public keys into the environment, from which the server has them.
func publicKeys(t testing.TB, dir string) {
	t.Helper()
	f, err := os.Open(keys.PublicFile(dir))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), "=")
		require.True(t, ok)
		t.Setenv(name, value)
	}
	require.NoError(t, lines.Err())
}

// as returns the environment of a process that is the role's user.
func (g *guarded) as(role permission.Role) []string {
	return append([]string{
		"WAGGLE_NATS=" + g.url, "WAGGLE_NATS_BOOTSTRAP=verify", "WAGGLE_NATS_NKEY=" + keys.SeedFile(g.keys, role),
		signingEnv(g.keys)[0], signingEnv(g.keys)[1],
	}, g.env...)
}

// run runs a command as the role to its end and returns its output.
func (g *guarded) run(role permission.Role, args ...string) string {
	g.t.Helper()
	p := process.Start(g.t, process.Options{Name: args[0], Dir: g.dir, Env: g.as(role), Args: args})
	require.NoError(g.t, p.Wait(), p.Output())
	return p.Output()
}

// serve starts every role in a process of its own and returns the gateway's address
// once it is ready.
func (g *guarded) serve() (addr string) {
	g.t.Helper()
	addr, g.running = freeport.Addr(g.t), map[string]*process.Process{}
	for _, role := range config.Roles {
		args := []string{"serve", "--role", role}
		if role == config.RoleGateway {
			args = append(args, "--addr", addr)
		}
		p := process.Start(g.t, process.Options{Name: role, Dir: g.dir, Env: g.as(permission.Role(role)), Args: args})
		g.running[role] = p
		if role == config.RoleGateway {
			p.Ready(addr)
		}
	}
	for role, p := range g.running { // a process that still starts would miss what a test changes
		process.Eventually(g.t, role+" runs", func() bool { return strings.Contains(p.Output(), "components running") })
	}
	return addr
}

// cluster is the NATS servers of an installation as deploy/nats has them for several.
type cluster struct {
	servers []*server.Server
	options []*server.Options
}

// startCluster starts three servers, with new keys.
func startCluster(t testing.TB, env ...string) (*guarded, *cluster) {
	t.Helper()
	return startClusterIn(t, func(o *server.Options) { o.StoreDir = t.TempDir() }, env...)
}

// startClusterIn is startCluster for servers whose folders are set by store.
func startClusterIn(t testing.TB, store func(*server.Options), env ...string) (*guarded, *cluster) {
	t.Helper()
	root := t.TempDir()
	g := &guarded{t: t, keys: filepath.Join(root, "run", "secrets"), dir: t.TempDir(), env: env, log: &refusals{}}
	g.makeKeys()
	etc := filepath.Join(root, "etc", "nats")
	require.NoError(t, os.CopyFS(etc, os.DirFS(filepath.Join("..", "deploy", "nats"))))
	require.NoError(t, keys.EnsureRoutes(g.keys, []string{"nats-1", "nats-2", "nats-3"}))
	c := &cluster{}
	var routes []*url.URL
	for i := range 3 {
		t.Setenv("WAGGLE_NATS_NAME", fmt.Sprint("nats-", i+1))
		opts, err := server.ProcessConfigFile(filepath.Join(etc, "cluster.conf"))
		require.NoError(t, err)
		opts.Cluster.Host, opts.Cluster.Port = "127.0.0.1", freeport.Port(t)
		routes = append(routes, &url.URL{
			Scheme: "nats-route", User: url.UserPassword(opts.Cluster.Username, opts.Cluster.Password),
			Host: net.JoinHostPort(opts.Cluster.Host, strconv.Itoa(opts.Cluster.Port)),
		})
		opts.Port = freeport.Port(t)
		store(opts)
		c.options = append(c.options, opts)
	}
	var urls []string
	for _, opts := range c.options {
		opts.Routes = routes
		s := g.startServer(opts)
		c.servers, urls = append(c.servers, s), append(urls, s.ClientURL())
	}
	g.url = strings.Join(urls, ",")
	process.Eventually(t, "the cluster has a leader", func() bool {
		return slices.ContainsFunc(c.servers, (*server.Server).JetStreamIsLeader)
	})
	return g, c
}

// dial connects as the role's user. The channel gets the refusals of the server.
func (g *guarded) dial(role permission.Role) (*nats.Conn, <-chan error) {
	g.t.Helper()
	key, err := nats.NkeyOptionFromSeed(keys.SeedFile(g.keys, role))
	require.NoError(g.t, err)
	refused := make(chan error, 1024)
	nc, err := nats.Connect(g.url, key, nats.Timeout(bustest.MaxWait), nats.CustomInboxPrefix(permission.Inbox(role)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	require.NoError(g.t, err)
	g.t.Cleanup(nc.Close)
	return nc, refused
}

// refusals is the log of the server, of which it keeps what it has refused.
type refusals struct {
	mu    sync.Mutex
	lines []string
}

func (r *refusals) note(format string, v ...any) {
	if line := fmt.Sprintf(format, v...); strings.Contains(line, "Violation") || strings.Contains(line, "authentication error") {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lines = append(r.lines, line)
	}
}

// all returns what was refused so far.
func (r *refusals) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lines...)
}

// take is all for what is judged now, and not again later.
func (r *refusals) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.lines
	r.lines = nil
	return taken
}

// Noticef implements server.Logger.
func (r *refusals) Noticef(format string, v ...any) { r.note(format, v...) }

// Warnf implements server.Logger.
func (r *refusals) Warnf(format string, v ...any) { r.note(format, v...) }

// Fatalf implements server.Logger.
func (r *refusals) Fatalf(format string, v ...any) { r.note(format, v...) }

// Errorf implements server.Logger.
func (r *refusals) Errorf(format string, v ...any) { r.note(format, v...) }

// Debugf implements server.Logger.
func (r *refusals) Debugf(string, ...any) {}

// Tracef implements server.Logger.
func (r *refusals) Tracef(string, ...any) {}
