package e2e_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/bus/embedded"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// fleet is an installation of separate processes over one NATS server, which the
// test runs itself, with a scripted model and one tool that must not run twice.
type fleet struct {
	telemetry map[string]string // where gateways serve metrics, by the address of clients
	t         *testing.T
	bus       *server.Server
	store     string // of the bus
	nats      string
	config    string
	workspace string
	signing   string   // folder of the keys
	env       []string // of its processes, beside what all have
	llm       *scripted.Server

	pays   atomic.Int32
	paying chan struct{}
}

func newFleet(t *testing.T, script scripted.Script) *fleet {
	t.Helper()
	f := &fleet{t: t, workspace: t.TempDir(), store: t.TempDir(), signing: t.TempDir(), paying: make(chan struct{}, 64)}
	require.NoError(t, os.WriteFile(filepath.Join(f.workspace, "notes.md"), []byte("buy milk"), 0o600))
	f.startBus(-1)
	t.Cleanup(f.stopBus)
	f.nats = f.bus.ClientURL()
	_, err := keys.EnsureSigning(f.signing)
	require.NoError(t, err)
	f.llm, err = scripted.Start("127.0.0.1:0", script)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.llm.Close() })
	f.config = filepath.Join(t.TempDir(), "waggle.yaml")
	require.NoError(t, os.WriteFile(f.config, fmt.Appendf(nil, `
model: openai:scripted
tools:
  services: [weather]
  service_rules: [{service: weather, approval: never, untrusted: false}]
  servers:
    - name: bank
      url: %s
      approval: never
      untrusted: false
`, f.bank()), 0o600))
	return f
}

// startBus starts the NATS server with what is in its store, on a port or any.
func (f *fleet) startBus(port int) {
	f.t.Helper()
	var err error
	f.bus, err = embedded.Start(embedded.Config{Name: "e2e", Port: port, StoreDir: f.store, Sync: bustest.SyncEvery})
	require.NoError(f.t, err)
}

func (f *fleet) stopBus() {
	f.bus.Shutdown()
	f.bus.WaitForShutdown()
}

// restartBus stops the NATS server and starts it again in the same place.
func (f *fleet) restartBus() {
	f.t.Helper()
	at, ok := f.bus.Addr().(*net.TCPAddr)
	require.True(f.t, ok)
	f.stopBus()
	f.startBus(at.Port)
}

// bank serves a tool that pays once for every call and never answers before its
// caller has gone: the test kills the caller in the middle.
func (f *fleet) bank() string {
	srv := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	type in struct {
		Amount int `json:"amount"`
	}
	mcp.AddTool(srv, &mcp.Tool{Name: "pay", Description: "pays"},
		func(ctx context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
			f.pays.Add(1)
			f.paying <- struct{}{}
			<-ctx.Done()
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(a.Amount)}}}, nil, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, nil))
	f.t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL
}

// configure adds settings to the configuration file.
func (f *fleet) configure(yaml string) {
	f.t.Helper()
	file, err := os.OpenFile(f.config, os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(f.t, err)
	_, err = file.WriteString(yaml)
	require.NoError(f.t, err)
	require.NoError(f.t, file.Close())
}

// serve starts a process with some roles.
func (f *fleet) serve(roles string, args ...string) *process.Process {
	f.t.Helper()
	return process.Start(f.t, process.Options{
		Name: roles,
		Env:  append(append(signingEnv(f.signing), f.env...), "OPENAI_BASE_URL="+f.llm.OpenAIBaseURL(), "OPENAI_API_KEY="+process.Canary),
		Args: append([]string{"serve", "--role", roles, "--nats", f.nats, "--config", f.config, "--workspace", f.workspace}, args...),
	})
}

// signingEnv names the signing keys of the folder. Every process gets both, and only gateways use the seed.
func signingEnv(dir string) []string {
	return []string{"WAGGLE_SIGNING_KEY_FILE=" + keys.SigningFile(dir), "WAGGLE_SIGNING_PUBLIC_KEY_FILE=" + keys.SigningPublicFile(dir)}
}

// gateway starts a gateway and returns it with its address, once it is ready.
func (f *fleet) gateway() (*process.Process, string) {
	f.t.Helper()
	addr := freeport.Addr(f.t)
	if f.telemetry == nil {
		f.telemetry = map[string]string{}
	}
	f.telemetry[addr] = freeport.Addr(f.t)
	p := f.serve("gateway", "--addr", addr, "--telemetry-addr", f.telemetry[addr])
	p.Ready(addr)
	return p, addr
}

// listen connects to NATS as a monitor does.
func (f *fleet) listen() *nats.Conn {
	f.t.Helper()
	nc, err := nats.Connect(f.nats, nats.Timeout(bustest.MaxWait))
	require.NoError(f.t, err)
	f.t.Cleanup(nc.Close)
	return nc
}

// words is a text that takes a while at a word every interval.
func words(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("word%03d ", i)
	}
	return out
}

// wordByWord answers every question with n words. Each of the first ones comes once next was called for the one before, so that it
// is a piece of its own; the others come one per interval.
func wordByWord(n, first int, interval time.Duration) (script scripted.Script, next func()) {
	all, seen, steps := words(n), make(chan struct{}, first), []scripted.Step{}
	for _, word := range all[:first] {
		steps = append(steps, scripted.Text(word), scripted.Gate(seen))
	}
	steps = append(steps, scripted.Every(interval, all[first:]...))
	return scripted.Always(scripted.Stream(steps...)), func() { seen <- struct{}{} }
}
