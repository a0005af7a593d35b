package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/sandbox"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/remote"
	"github.com/waggle-dev/waggle/services/tools/service"
)

// maxWait is the deadline of required events on the slowest machine.
const maxWait = 60 * time.Second

// tick is the interval of looks at an awaited state.
const tick = 20 * time.Millisecond

// callLimit exceeds the time in which the slowest machine detects a flooding server.
const callLimit = 5 * maxWait

// program returns a tool server of the child's kind, without a sandbox: its tests see its processes and files as they are.
func program(name, mode string, env ...string) mcpservers.Config {
	c := mcpservers.Config{
		Name: name, Command: []string{os.Args[0]}, Env: map[string]string{childMode: mode, "GORACE": race}, Timeout: callLimit,
		Sandbox: sandbox.Settings{Mode: sandbox.Off},
	}
	for i := 0; i < len(env); i += 2 {
		c.Env[env[i]] = env[i+1]
	}
	return c
}

// buildDir is a folder for the programs that all tests use.
type buildDir struct{ path string }

var built buildDir

func (d *buildDir) make() (string, error) {
	var err error
	if d.path, err = os.MkdirTemp("", "w"); err != nil {
		return "", err
	}
	return d.path, os.Chmod(d.path, 0o755)
}

func (d *buildDir) remove() {
	if d.path != "" {
		_ = os.RemoveAll(d.path)
	}
}

// publicDir returns a folder that every user can reach: the programs of a root process run as another one. Its path is short
// enough for sockets.
func publicDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "w")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

// rig is a running service with a caller.
type rig struct {
	tools.Caller
	svc *service.Service
	reg *prometheus.Registry
	dir string // a folder for the records of tools

	conn *bus.Conn // nil without a bus
}

var nextID atomic.Int64

// start starts a service within this process.
func start(t testing.TB, cfg service.Config) *rig {
	t.Helper()
	return launch(t, cfg, service.Deps{})
}

// startOnBus starts a service behind a bus.
func startOnBus(t testing.TB, cfg service.Config) *rig {
	t.Helper()
	conn := bustest.Single(t)
	r := launch(t, cfg, service.Deps{Conn: conn})
	r.Caller = remote.NewClient(bustest.Dial(t, conn.NATS().ConnectedUrl()))
	return r
}

func launch(t testing.TB, cfg service.Config, deps service.Deps) *rig {
	t.Helper()
	r := &rig{conn: deps.Conn, dir: t.TempDir(), reg: prometheus.NewRegistry()}
	if cfg.Workspace == "" {
		cfg.Workspace = filepath.Join(r.dir, "workspace")
	}
	if deps.Signatures == nil {
		cfg = unasked(cfg)
	}
	deps.Registry = r.reg
	deps.Logger = zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel)
	svc, err := service.New(cfg, deps)
	require.NoError(t, err)
	t.Cleanup(svc.Stop)
	require.NoError(t, svc.Start(t.Context()))
	r.svc, r.Caller = svc, svc
	return r
}

// unasked lets all tools run without an approval: what is tested is how they run.
func unasked(cfg service.Config) service.Config {
	cfg.Servers = slices.Clone(cfg.Servers)
	for i := range cfg.Servers {
		cfg.Servers[i].Rules.Approval = event.ApprovalNever
	}
	cfg.ServiceRules = map[string]tools.Rules{"*": {Approval: event.ApprovalNever}}
	return cfg
}

func (r *rig) file(name string) string { return filepath.Join(r.dir, name) }

// await waits until the service offers a tool.
func (r *rig) await(t testing.TB, tool string) tools.Tool {
	t.Helper()
	var found tools.Tool
	require.Eventually(t, func() bool {
		list, err := r.List(context.Background(), id.DefaultTenant)
		for _, o := range list {
			if o.Name == tool {
				found = o
				return err == nil
			}
		}
		return false
	}, maxWait, tick, "no tool %s", tool)
	return found
}

type args map[string]any

func (a args) raw(t testing.TB) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(a)
	require.NoError(t, err)
	return b
}

func newCall(t testing.TB, tool string, a args) tools.Call {
	t.Helper()
	return tools.Call{
		ID: fmt.Sprintf("call-%d", nextID.Add(1)), Scope: "test", Tenant: id.DefaultTenant,
		Tool: tool, Arguments: a.raw(t), Timeout: callLimit,
	}
}

// call runs a tool that must succeed, and returns its text.
func (r *rig) call(t testing.TB, tool string, a args) string {
	t.Helper()
	res, err := r.Call(context.Background(), newCall(t, tool, a))
	require.NoError(t, err)
	require.False(t, res.IsError, res.Text)
	return res.Text
}

// timesOut calls a tool that does not end until the time of a call is over after the tool has begun: on a busy machine it may
// be over before. The tool records in the file.
func (r *rig) timesOut(t testing.TB, tool, file string) tools.Call {
	t.Helper()
	for timeout := maxWait / 100; ; timeout *= 2 {
		r.call(t, "child_echo", nil) // the server may have been stopped
		c := newCall(t, tool, args{"file": r.file(file)})
		c.Timeout = timeout
		_, err := r.Call(context.Background(), c)
		ran := r.ran(t, file) > 0
		if !ran && errors.Is(err, fault.New(fault.ToolsDown)) {
			continue // the time was over before the request
		}
		if isFault(t, err, fault.ToolTimeout); ran {
			return c
		}
	}
}

// text runs a tool that must answer, with or without an error, and returns its text.
func (r *rig) text(t testing.TB, tool string, a args) string {
	t.Helper()
	res, err := r.Call(context.Background(), newCall(t, tool, a))
	require.NoError(t, err)
	return res.Text
}

// fails runs a tool that must fail, and returns the fault.
func (r *rig) fails(t testing.TB, c tools.Call, code fault.Code) *fault.Fault {
	t.Helper()
	_, err := r.Call(context.Background(), c)
	return isFault(t, err, code)
}

func isFault(t testing.TB, err error, code fault.Code) *fault.Fault {
	t.Helper()
	var f *fault.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, code, f.Code, "%v", err)
	return f
}

// ran returns the number of records of tools in the file.
func (r *rig) ran(t testing.TB, file string) int {
	t.Helper()
	b, err := os.ReadFile(r.file(file))
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	return strings.Count(string(b), "\n")
}

// began waits until a tool has recorded that it runs.
func (r *rig) began(t testing.TB, file string) {
	t.Helper()
	require.Eventually(t, func() bool { return r.ran(t, file) > 0 }, maxWait, 5*time.Millisecond)
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	rest := string(b[strings.LastIndexByte(string(b), ')')+1:])
	return !strings.HasPrefix(rest, " Z")
}

func dies(t testing.TB, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return !alive(pid) }, maxWait, 10*time.Millisecond, "process %d is still there", pid)
}

func jsonOK(s string) bool { return json.Valid([]byte(s)) }
