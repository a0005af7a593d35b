package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/e2e/flows"
	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// Most tests share two installations: "one" is a single process with the demo model, "apart" is as deployed, with a scripted
// model, a cluster of three NATS servers, a user of it for each role, a process for each service, and two gateways. Each test
// is a tenant of its own, so that tests do not see each other.
var (
	one   oneProcess
	apart processesApart
)

// tenants of a shared installation are as many as tests may need it.
const tenants = 64

// place is where a test talks to an installation, and as whom.
type place struct {
	t      *testing.T
	addr   string
	other  string // another gateway; may be empty
	key    string // empty without authentication
	tenant id.Tenant
	folder string // the tenant's files
}

func (p place) swarm() swarmRig        { return swarmRig{t: p.t, addr: p.addr, key: p.key} }
func (p place) agui() aguiClient       { return aguiClient{t: p.t, addr: p.addr, key: p.key} }
func (p place) sdk() swarm.Options     { return swarm.Options{URL: "ws://" + p.addr, Token: p.key} }
func (p place) at(addr string) place   { p.addr = addr; return p }
func (p place) in(t *testing.T) place  { p.t = t; return p }
func (p place) url(path string) string { return "http://" + p.addr + path }

func (p place) myagent() *client.RawMyAgent {
	p.t.Helper()
	return client.DialMyAgentAs(p.t, p.addr, p.key)
}

// orbit opens a chat; query is its address behind /ws.
func (p place) orbit(query string) *client.Orbit {
	p.t.Helper()
	return client.DialOrbitAs(p.t, "ws://"+p.addr+"/ws"+query, p.key)
}

// file puts a file into the tenant's folder.
func (p place) file(name, text string) {
	p.t.Helper()
	require.NoError(p.t, os.MkdirAll(p.folder, 0o750))
	require.NoError(p.t, os.WriteFile(filepath.Join(p.folder, name), []byte(text), 0o600))
}

// env has the command line talk to the place.
func (p place) env() []string {
	return []string{"WAGGLE_URL=ws://" + p.addr + "/ws", "WAGGLE_TOKEN=" + p.key}
}

// waggle runs a command at the place, and returns what it printed.
func (p place) waggle(args ...string) string {
	p.t.Helper()
	c := process.Start(p.t, process.Options{Name: args[0], Env: p.env(), Args: args})
	require.NoError(p.t, c.Wait(), c.Output())
	return c.Output()
}

// keyring is the users of a shared installation: each tenant has one, another one, an operator and a viewer.
type keyring struct{ taken atomic.Int64 }

func tenantOf(n int) string { return fmt.Sprintf("tenant-%02d", n) }
func keyOfTenant(name string) string {
	return process.Canary + "-key-of-" + name
}

// yaml is the section auth of the configuration.
func (k *keyring) yaml() string {
	var b strings.Builder
	b.WriteString("auth:\n  api_keys:\n")
	for n := range tenants {
		name := tenantOf(n)
		fmt.Fprintf(&b, "    - {id: %s, subject: anonymous, sha256: %s, tenant: %s, roles: [user, agent, service]}\n", name, auth.HashKey(keyOfTenant(name)), name)
		fmt.Fprintf(&b, "    - {id: %s-other, sha256: %s, tenant: %s, roles: [user, agent, service]}\n", name, auth.HashKey(keyOfTenant(name)+"-other"), name)
		fmt.Fprintf(&b, "    - {id: %s-operator, sha256: %s, tenant: %s, roles: [operator]}\n", name, auth.HashKey(keyOfTenant(name)+"-operator"), name)
		fmt.Fprintf(&b, "    - {id: %s-viewer, sha256: %s, tenant: %s, roles: [viewer]}\n", name, auth.HashKey(keyOfTenant(name)+"-viewer"), name)
	}
	return b.String()
}

// place returns the next tenant's.
func (k *keyring) place(t *testing.T, workspace string) place {
	t.Helper()
	n := int(k.taken.Add(1)) - 1
	require.Less(t, n, tenants, "more tests share an installation than it has tenants")
	tenant, err := id.ParseTenant(tenantOf(n))
	require.NoError(t, err)
	return place{t: t, key: keyOfTenant(tenantOf(n)), tenant: tenant, folder: filepath.Join(workspace+".tenants", tenantOf(n))}
}

// settings of both shared installations: what tests wait for comes soon, and no test is too fast.
const settings = `
pipeline: {retry_backoff: 20ms}
worker: {model_tries: 1}
gateway:
  message_rate: 1000
  message_burst: 1000
  peers: {grace: 1s}
assistant: {enabled: false}
`

// oneProcess is the shared "waggle up".
type oneProcess struct {
	process.Shared
	keyring
	dir, addr string
}

// forTenant returns a place of the test's own.
func (o *oneProcess) forTenant(t *testing.T) place {
	t.Helper()
	o.Begin(t, func() {
		o.dir, o.addr = o.TempDir(), freeport.Addr(&o.Shared)
		file := filepath.Join(o.dir, "waggle.yaml")
		require.NoError(t, os.WriteFile(file, []byte(settings+o.yaml()), 0o600))
		p := process.Start(&o.Shared, process.Options{
			Name: "shared up", Dir: o.dir, Env: []string{"WAGGLE_SESSION_STATE_KEYS=" + sameKey},
			Args: []string{"up", "--config", file, "--addr", o.addr, "--nats-addr", freeport.Addr(&o.Shared), "--data", filepath.Join(o.dir, "data")},
		})
		p.Ready(o.addr)
	})
	p := o.place(t, filepath.Join(o.dir, "workspace"))
	p.addr = o.addr
	return p
}

// processesApart is the shared installation of many processes.
type processesApart struct {
	process.Shared
	keyring
	*guarded
	addrs [2]string
	llm   *scripted.Server
	stage *flows.Stage

	mu    sync.Mutex
	casts []*cast
}

// cast is the model of one test: it answers conversations that hold its cue, a text that the test puts into its questions.
type cast struct {
	cue    string
	script scripted.Script
	llm    *scripted.Server
}

// asked returns the requests to the model of the test so far.
func (c *cast) asked() (all []*scripted.Exchange) {
	for _, x := range c.llm.Exchanges() {
		if strings.Contains(string(x.Body), c.cue) {
			all = append(all, x)
		}
	}
	return all
}

// forTenant returns a place of the test's own, and the model that answers there by the script.
func (a *processesApart) forTenant(t *testing.T, script scripted.Script) (place, *cast) {
	t.Helper()
	a.Begin(t, func() { a.start() })
	p := a.place(t, filepath.Join(a.dir, "workspace"))
	p.addr, p.other = a.addrs[0], a.addrs[1]
	c := &cast{cue: "(" + p.tenant.String() + ")", script: script, llm: a.llm}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.casts = append(a.casts, c)
	return p, c
}

// script lets the cast answer whose cue is in the conversation. All others are of the flows.
func (a *processesApart) script(rest scripted.Script) scripted.Script {
	return func(x *scripted.Exchange) scripted.Reply {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, c := range a.casts {
			if strings.Contains(string(x.Body), c.cue) {
				return c.script(x)
			}
		}
		return rest(x)
	}
}

func (a *processesApart) start() {
	t := &a.Shared
	stage, rest := flows.NewStage()
	a.stage = stage
	var err error
	a.llm, err = scripted.Start("127.0.0.1:0", a.script(rest))
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.llm.Close() })
	a.guarded, _ = startCluster(t, "OPENAI_BASE_URL="+a.llm.OpenAIBaseURL(), "OPENAI_API_KEY="+process.Canary, "WAGGLE_SESSION_STATE_KEYS="+sameKey)
	file := filepath.Join(a.dir, "waggle.yaml")
	yaml := settings + a.yaml() + `
model: openai:x
nats: {replicas: 3, event_max_bytes: 33554432}
tools: {services: [weather], service_rules: [{service: weather, approval: never, untrusted: false}]}
`
	require.NoError(t, os.WriteFile(file, []byte(yaml), 0o600))
	a.env = append(a.env, "WAGGLE_CONFIG="+file)
	a.run(permission.Bootstrap, "bootstrap")
	a.addrs[0] = a.serve()
	a.addrs[1] = a.gateway()
}

// gateway starts another gateway.
func (g *guarded) gateway() (addr string) {
	g.t.Helper()
	addr = freeport.Addr(g.t)
	p := process.Start(g.t, process.Options{
		Name: "gateway 2", Dir: g.dir, Env: g.as(permission.Gateway), Args: []string{"serve", "--role", config.RoleGateway, "--addr", addr},
	})
	p.Ready(addr)
	return addr
}

// endShared ends what tests have shared, and reports whether it was in order: the NATS servers have refused nothing.
func endShared() bool {
	ok := true
	if apart.guarded != nil {
		if refused := apart.log.all(); len(refused) > 0 {
			fmt.Fprintln(os.Stderr, "the NATS servers refused", refused)
			ok = false
		}
	}
	for _, s := range []*process.Shared{&one.Shared, &apart.Shared} {
		ok = s.End() && ok
	}
	return ok
}
