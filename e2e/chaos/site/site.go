package site

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
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

const (
	servers = 3 // as many as a stream has copies
	// Replicas of every role run, so that another one takes over.
	Replicas = 2
	// diskSize is room for a run on a NATS server's own small disk.
	diskSize = "size=512m"
)

// Tenants of the installation. Their clients write their names into all that they say.
var Tenants = []string{"red", "blue"}

// KeyOf is the API key of a tenant: a canary that no process may print.
func KeyOf(tenant string) string { return process.Canary + "-key-of-" + tenant }

// Site is an installation.
type Site struct {
	T      testing.TB
	Net    *Network
	Dir    string
	Keys   string
	env    []string // of everything
	clocks bool     // can be set

	Servers  []*Member // NATS
	Gateways []*Member
	Services map[string][]*Member

	Proxies *Proxies // slow connections down
	Bank    *Bank
	llm     *scripted.Server
	Conn    *nats.Conn // as the observer, who may do everything
	Js      jetstream.JetStream
	mu      sync.Mutex
	heard   []string // advisories: stream and leader
	http    map[*Member]string
}

// Options say what an installation is to be like.
type Options struct {
	Clocks bool // the clock of every process can be set
}

// New starts an installation and returns when its gateways are ready.
func New(t testing.TB, opt Options) *Site {
	t.Helper()
	s := &Site{
		T: t, clocks: opt.Clocks, Net: NewNetwork(t), Dir: t.TempDir(), Services: map[string][]*Member{}, http: map[*Member]string{},
	}
	s.Keys = filepath.Join(s.Dir, "keys")
	_, err := keys.Ensure(s.Keys)
	require.NoError(t, err)
	for _, role := range keys.Roles() {
		seed, err := os.ReadFile(keys.SeedFile(s.Keys, role))
		require.NoError(t, err)
		process.Secret("the key of "+string(role), strings.TrimSpace(string(seed)))
	}
	s.llm, err = scripted.Start(s.Net.Hub()+":0", script())
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.llm.Close() })
	s.Bank = openBank(t, s.Net.Hub())
	s.Proxies = newProxies(t, s.Net.Hub())
	s.startServers()
	s.observe()
	s.configure()
	s.bootstrap()
	s.startServices()
	return s
}

// configure writes the configuration of every Waggle process.
func (s *Site) configure() {
	s.T.Helper()
	var users strings.Builder
	for _, tenant := range Tenants {
		fmt.Fprintf(&users, "    - {id: %s, sha256: %s, tenant: %s, roles: [user, agent, service]}\n", tenant, auth.HashKey(KeyOf(tenant)), tenant)
	}
	text := fmt.Sprintf(`
model: openai:scripted
nats: {replicas: %d, bootstrap: verify, event_max_bytes: 33554432}
auth:
  api_keys:
%spipeline: {retry_backoff: 50ms}
session: {state_keys: [%s-state-key-of-thirty-two-characters]}
gateway: {drain_spread: 2s, max_connections: 20000, per_principal: 20000}
quota: # its clients are few principals with the load of many
  tenant: {sessions: -1, tasks: -1, teams: -1, tokens: -1, children: -1}
  principal: {sessions: -1, tasks: -1, teams: -1, tokens: -1}
tools:
  servers:
    - name: bank
      url: %s
      approval: never
      untrusted: false
`, servers, users.String(), process.Canary, s.Bank.URL)
	require.NoError(s.T, os.WriteFile(filepath.Join(s.Dir, "waggle.yaml"), []byte(text), 0o600))
	s.env = []string{
		"OPENAI_BASE_URL=" + s.llm.OpenAIBaseURL(), "OPENAI_API_KEY=" + process.Canary + "-model-key",
		"ANTHROPIC_API_KEY=" + process.Canary + "-other-model-key",
	}
}

// Urls returns the addresses of the NATS servers, separated by commas.
func (s *Site) Urls() string {
	urls := make([]string, len(s.Servers))
	for i, m := range s.Servers {
		urls[i] = "nats://" + m.Addr
	}
	return strings.Join(urls, ",")
}

// As is the environment of a process that is the role's user.
func (s *Site) As(role, urls string) []string {
	return append([]string{
		"WAGGLE_NATS=" + urls, "WAGGLE_NATS_NKEY=" + keys.SeedFile(s.Keys, permission.Role(role)),
		"WAGGLE_SIGNING_KEY_FILE=" + keys.SigningFile(s.Keys), "WAGGLE_SIGNING_PUBLIC_KEY_FILE=" + keys.SigningPublicFile(s.Keys),
	}, s.env...)
}

func (s *Site) bootstrap() {
	s.T.Helper()
	p := process.Start(s.T, process.Options{
		Name: "bootstrap", Dir: s.Dir, Env: s.As("bootstrap", s.Urls()), Args: []string{"bootstrap", "--config", filepath.Join(s.Dir, "waggle.yaml")},
	})
	require.NoError(s.T, p.Wait(), p.Output())
}

func (s *Site) startServices() {
	s.T.Helper()
	for _, role := range config.Roles {
		for i := range Replicas {
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
		s.Proxies.connect(fmt.Sprintf("gateway-%d", i+1), g.Addr)
	}
}

// serve starts the i-th process of a role. The second gateway reaches the bus over lines
// that can be slowed down.
func (s *Site) serve(role string, i int) *Member {
	s.T.Helper()
	name := fmt.Sprintf("%s-%d", role, i+1)
	m := &Member{s: s, Name: name, Role: role, Place: s.Net.Place(name)}
	urls := s.Urls()
	m.Addr, m.Telemetry = m.Place.Addr(), m.Place.Addr()
	args := []string{"serve", "--role", role, "--config", filepath.Join(s.Dir, "waggle.yaml"), "--addr", m.Addr, "--telemetry-addr", m.Telemetry}
	if role == config.RoleGateway && i == 1 {
		urls = s.uplinks()
	}
	m.opt = process.Options{Name: name, Dir: filepath.Join(s.Dir, name), Env: s.As(role, urls), Args: args, Wrap: m.Place.Wrap()}
	require.NoError(s.T, os.MkdirAll(m.opt.Dir, 0o700))
	m.wind(s.T)
	m.Start()
	return m
}

func (s *Site) uplinks() string {
	urls := make([]string, len(s.Servers))
	for i, m := range s.Servers {
		urls[i] = "nats://" + s.Proxies.connect("uplink-"+m.Name, m.Addr)
	}
	return strings.Join(urls, ",")
}

// observe connects as the one user who is in no list: it reads everything past the code
// under test, moves leaders, and sends commands twice.
func (s *Site) observe() {
	s.T.Helper()
	seed, err := os.ReadFile(s.observerSeed())
	require.NoError(s.T, err)
	pair, err := nkeys.FromSeed(seed)
	require.NoError(s.T, err)
	public, err := pair.PublicKey()
	require.NoError(s.T, err)
	s.Conn, err = nats.Connect(s.Urls(), nats.Nkey(public, pair.Sign), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond),
		nats.RetryOnFailedConnect(true))
	require.NoError(s.T, err)
	s.T.Cleanup(s.Conn.Close)
	s.Js, err = jetstream.New(s.Conn, jetstream.WithDefaultTimeout(10*time.Second))
	require.NoError(s.T, err)
	process.Eventually(s.T, "the cluster takes requests", func() bool {
		ctx, cancel := context.WithTimeout(s.T.Context(), 2*time.Second)
		defer cancel()
		_, err := s.Js.AccountInfo(ctx)
		return err == nil
	})
	_, err = s.Conn.Subscribe("$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.*", func(m *nats.Msg) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.heard = append(s.heard, string(m.Data))
	})
	require.NoError(s.T, err)
}

// Elections returns how many leaders have been announced.
func (s *Site) Elections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.heard)
}

func (s *Site) observerSeed() string { return filepath.Join(s.Dir, "observer.nk") }

// publicKeys returns the environment from which NATS servers have the public keys.
func (s *Site) publicKeys() []string {
	s.T.Helper()
	f, err := os.Open(keys.PublicFile(s.Keys))
	require.NoError(s.T, err)
	defer func() { require.NoError(s.T, f.Close()) }()
	var out []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		out = append(out, lines.Text())
	}
	pair, err := nkeys.CreateUser()
	require.NoError(s.T, err)
	seed, err := pair.Seed()
	require.NoError(s.T, err)
	require.NoError(s.T, os.WriteFile(s.observerSeed(), seed, 0o600))
	public, err := pair.PublicKey()
	require.NoError(s.T, err)
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
	stream, err := s.Js.Stream(ctx, "CMD")
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().State.Msgs, nil
}
