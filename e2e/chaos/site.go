package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/e2e/harness"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

const (
	servers  = 3 // as many as a stream has copies
	replicas = 2 // of every role: there is always somebody to take over
	// diskSize is room for a run on a NATS server's own small disk.
	diskSize = "size=512m"
)

// Tenants of the installation. Their clients write their names into all that they say.
var tenants = []string{"red", "blue"}

// Key is the API key of a tenant: a canary that no process may print.
func Key(tenant string) string { return harness.Canary + "-key-of-" + tenant }

// Site is an installation.
type Site struct {
	t      testing.TB
	Net    *Network
	dir    string
	keys   string
	env    []string // of everything
	clocks bool     // can be set

	Servers  []*Member // NATS
	Gateways []*Member
	Services map[string][]*Member

	Lines *Lines // what slows connections down
	Bank  *Bank
	llm   *scripted.Server
	conn  *nats.Conn // as the observer, who may do everything
	js    jetstream.JetStream
	mu    sync.Mutex
	heard []string // advisories: stream and leader
	http  map[*Member]string
}

// Options say what an installation is to be like.
type Options struct {
	Clocks bool // the clock of every process can be set
}

// Found starts an installation and returns when its gateways are ready.
func Found(t testing.TB, opt Options) *Site {
	t.Helper()
	s := &Site{
		t: t, clocks: opt.Clocks, Net: NewNetwork(t), dir: t.TempDir(), Services: map[string][]*Member{}, http: map[*Member]string{},
	}
	s.keys = filepath.Join(s.dir, "keys")
	_, err := keys.Ensure(s.keys)
	require.NoError(t, err)
	for _, role := range keys.Roles() {
		seed, err := os.ReadFile(keys.SeedFile(s.keys, role))
		require.NoError(t, err)
		harness.Secret("the key of "+string(role), strings.TrimSpace(string(seed)))
	}
	s.llm, err = scripted.Start(s.Net.Hub()+":0", script())
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.llm.Close() })
	s.Bank = openBank(t, s.Net.Hub())
	s.Lines = layLines(t, s.Net.Hub())
	s.startServers()
	s.observe()
	s.configure()
	s.bootstrap()
	s.startServices()
	return s
}

// configure writes the configuration of every Waggle process.
func (s *Site) configure() {
	s.t.Helper()
	var users strings.Builder
	for _, tenant := range tenants {
		fmt.Fprintf(&users, "    - {id: %s, sha256: %s, tenant: %s, roles: [user, agent, service]}\n", tenant, auth.HashKey(Key(tenant)), tenant)
	}
	text := fmt.Sprintf(`
model: openai:scripted
nats: {replicas: %d, bootstrap: verify, event_max_bytes: 33554432}
auth:
  api_keys:
%spipeline: {retry_backoff: 50ms}
session: {state_keys: [%s-state-key-of-thirty-two-characters]}
gateway: {drain_spread: 2s, max_connections: 20000, per_principal: 20000}
tools:
  servers:
    - name: bank
      url: %s
`, servers, users.String(), harness.Canary, s.Bank.URL)
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, "waggle.yaml"), []byte(text), 0o600))
	s.env = []string{
		"OPENAI_BASE_URL=" + s.llm.OpenAIBaseURL(), "OPENAI_API_KEY=" + harness.Canary + "-model-key",
		"ANTHROPIC_API_KEY=" + harness.Canary + "-other-model-key",
	}
}

func (s *Site) urls() string {
	urls := make([]string, len(s.Servers))
	for i, m := range s.Servers {
		urls[i] = "nats://" + m.Addr
	}
	return strings.Join(urls, ",")
}

// as is the environment of a process that is the role's user.
func (s *Site) as(role, urls string) []string {
	return append([]string{"WAGGLE_NATS=" + urls, "WAGGLE_NATS_NKEY=" + keys.SeedFile(s.keys, permission.Role(role))}, s.env...)
}

func (s *Site) bootstrap() {
	s.t.Helper()
	p := harness.Start(s.t, harness.Options{
		Name: "bootstrap", Dir: s.dir, Env: s.as("bootstrap", s.urls()), Args: []string{"bootstrap", "--config", filepath.Join(s.dir, "waggle.yaml")},
	})
	require.NoError(s.t, p.Wait(), p.Output())
}

func (s *Site) startServices() {
	s.t.Helper()
	for _, role := range config.Roles {
		for i := range replicas {
			m := s.serve(role, i)
			if role == config.RoleGateway {
				s.Gateways = append(s.Gateways, m)
				continue
			}
			s.Services[role] = append(s.Services[role], m)
		}
	}
	for i, g := range s.Gateways {
		g.p.Ready(g.Addr)
		s.Lines.connect(fmt.Sprintf("gateway-%d", i+1), g.Addr)
	}
}

// serve starts the i-th process of a role. The second gateway reaches the bus over lines
// that can be slowed down.
func (s *Site) serve(role string, i int) *Member {
	s.t.Helper()
	name := fmt.Sprintf("%s-%d", role, i+1)
	m := &Member{s: s, Name: name, Role: role, Place: s.Net.Place(name)}
	urls := s.urls()
	m.Addr = m.Place.Addr()
	args := []string{"serve", "--role", role, "--config", filepath.Join(s.dir, "waggle.yaml"), "--addr", m.Addr}
	if role == config.RoleGateway && i == 1 {
		urls = s.uplinks()
	}
	m.opt = harness.Options{Name: name, Dir: filepath.Join(s.dir, name), Env: s.as(role, urls), Args: args, Wrap: m.Place.Wrap()}
	require.NoError(s.t, os.MkdirAll(m.opt.Dir, 0o700))
	m.wind(s.t)
	m.Start()
	return m
}

func (s *Site) uplinks() string {
	urls := make([]string, len(s.Servers))
	for i, m := range s.Servers {
		urls[i] = "nats://" + s.Lines.connect("uplink-"+m.Name, m.Addr)
	}
	return strings.Join(urls, ",")
}

// observe connects as the one user who is in no list: it reads everything past the code
// under test, moves leaders, and sends commands twice.
func (s *Site) observe() {
	s.t.Helper()
	seed, err := os.ReadFile(s.observerSeed())
	require.NoError(s.t, err)
	pair, err := nkeys.FromSeed(seed)
	require.NoError(s.t, err)
	public, err := pair.PublicKey()
	require.NoError(s.t, err)
	s.conn, err = nats.Connect(s.urls(), nats.Nkey(public, pair.Sign), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond),
		nats.RetryOnFailedConnect(true))
	require.NoError(s.t, err)
	s.t.Cleanup(s.conn.Close)
	s.js, err = jetstream.New(s.conn, jetstream.WithDefaultTimeout(10*time.Second))
	require.NoError(s.t, err)
	harness.Eventually(s.t, "the cluster takes requests", func() bool {
		ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Second)
		defer cancel()
		_, err := s.js.AccountInfo(ctx)
		return err == nil
	})
	_, err = s.conn.Subscribe("$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.*", func(m *nats.Msg) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.heard = append(s.heard, string(m.Data))
	})
	require.NoError(s.t, err)
}

// elections returns how many leaders have been announced.
func (s *Site) elections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.heard)
}

func (s *Site) observerSeed() string { return filepath.Join(s.dir, "observer.nk") }

// publicKeys returns the environment from which NATS servers have the public keys.
func (s *Site) publicKeys() []string {
	s.t.Helper()
	f, err := os.Open(keys.PublicFile(s.keys))
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, f.Close()) }()
	var out []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		out = append(out, lines.Text())
	}
	pair, err := nkeys.CreateUser()
	require.NoError(s.t, err)
	seed, err := pair.Seed()
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(s.observerSeed(), seed, 0o600))
	public, err := pair.PublicKey()
	require.NoError(s.t, err)
	return append(out, "WAGGLE_NKEY_OBSERVER="+public)
}

// All returns every process but the NATS servers.
func (s *Site) All() []*Member {
	out := append([]*Member(nil), s.Gateways...)
	for _, role := range config.Roles {
		out = append(out, s.Services[role]...)
	}
	return out
}

// Quiet waits until no command is left to be carried out.
func (s *Site) Quiet(ctx context.Context) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := s.commandsLeft(ctx)
		if err == nil && left == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d commands are left: %w", left, errors.Join(ctx.Err(), err))
		}
	}
}

func (s *Site) commandsLeft(ctx context.Context) (uint64, error) {
	stream, err := s.js.Stream(ctx, "CMD")
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().State.Msgs, nil
}
