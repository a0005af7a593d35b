package service_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/lifecycle/lifecycletest"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/remote"
	"github.com/waggle-dev/waggle/services/tools/service"
)

func TestLifecycle(t *testing.T) {
	conn := bustest.Single(t)
	dir, err := directory.Open(t.Context(), conn)
	require.NoError(t, err)
	t.Cleanup(dir.Close)
	workspace := t.TempDir()
	lifecycletest.Exercise(t, func() lifecycle.Component {
		svc, err := service.New(
			service.Config{Builtin: true, Workspace: workspace, Servers: []mcpservers.Config{program("child", "good")}},
			service.Deps{Conn: conn, Directory: dir})
		require.NoError(t, err)
		return svc
	})
	lifecycletest.StartFails(t, func() lifecycle.Component {
		svc, err := service.New(service.Config{Builtin: true, Workspace: "/proc/nowhere"}, service.Deps{Conn: conn, Directory: dir})
		require.NoError(t, err)
		return svc
	})
}

func TestTheServiceIsInTheDirectory(t *testing.T) {
	conn := bustest.Single(t)
	dir, err := directory.Open(t.Context(), conn)
	require.NoError(t, err)
	t.Cleanup(dir.Close)
	members := func(d *directory.Directory) []directory.Member {
		return d.Members(directory.WhatService, id.MustName("tools"))
	}
	r := launch(t, service.Config{Builtin: true}, service.Deps{Conn: conn, Directory: dir})
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	// The service is listed while its servers still start; the entry follows.
	require.NoError(t, dir.Wait(ctx, func(d *directory.Directory) bool {
		m := members(d)
		return len(m) == 1 && string(m[0].Data) == `{"servers":["workspace"]}`
	}))
	require.Equal(t, conn.Instance(), members(dir)[0].Instance.String())
	require.NoError(t, r.svc.Drain(ctx))
	require.NoError(t, dir.Wait(ctx, func(d *directory.Directory) bool { return len(members(d)) == 0 }))
}

// `nats micro` finds the service and its endpoints.
func TestTheServiceIsDiscoverable(t *testing.T) {
	conn := bustest.Single(t)
	launch(t, service.Config{Builtin: true}, service.Deps{Conn: conn})
	m, err := conn.NATS().Request("$SRV.INFO.tools", nil, maxWait)
	require.NoError(t, err)
	var info micro.Info
	require.NoError(t, json.Unmarshal(m.Data, &info))
	var subjects []string
	for _, e := range info.Endpoints {
		subjects = append(subjects, e.Subject)
		require.Equal(t, "tools", e.QueueGroup)
	}
	require.ElementsMatch(t, []string{"rpc.tools.list", "rpc.tools.servers", "rpc.tools.call"}, subjects)
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	r := startOnBus(t, service.Config{Builtin: true})
	nc := bustest.Dial(t, busURL(t, r)).NATS()
	for _, subj := range []string{"rpc.tools.list", "rpc.tools.servers", "rpc.tools.call", "rpc.tools.cancel", "rpc.tools.attach"} {
		for _, body := range []string{"", "{", "[]", "null", `{"tenant":"a.b"}`, `{"id":7}`, `{"timeout":-1}`, strings.Repeat("x", 100_000)} {
			require.NoError(t, nc.PublishRequest(subj, "nobody.cares", []byte(body)))
			require.NoError(t, nc.Publish(subj, []byte(body)))
		}
	}
	require.NoError(t, nc.Flush())
	require.Contains(t, r.call(t, "workspace_list_files", nil), "notes.md")
}

func busURL(t *testing.T, r *rig) string {
	t.Helper()
	require.NotNil(t, r.conn)
	return r.conn.NATS().ConnectedUrl()
}

// During a loss of the bus the tool continues, and its result arrives afterwards.
func TestTheBusRestartsDuringACall(t *testing.T) {
	t.Parallel()
	url, restart := bustest.Server(t)
	r := launch(t, service.Config{Servers: []mcpservers.Config{program("child", "good")}}, service.Deps{Conn: bustest.Dial(t, url)})
	r.Caller = remote.NewClient(bustest.Dial(t, url))
	r.await(t, "child_echo")
	var call sync.WaitGroup
	call.Go(func() {
		res, err := r.Call(context.Background(), newCall(t, "child_sleep", args{"n": 500, "file": r.file("f")}))
		if err != nil || res.Text != "slept" {
			t.Errorf("%q, %v", res.Text, err)
		}
	})
	r.began(t, "f")
	restart()
	call.Wait()
	require.Equal(t, 1, r.ran(t, "f"))
}

// A closed connection delivers no outcome: its calls are lost at once.
func TestAClosedConnectionLosesItsCalls(t *testing.T) {
	t.Parallel()
	r := startOnBus(t, service.Config{Servers: []mcpservers.Config{program("child", "good")}})
	r.await(t, "child_echo")
	conn := bustest.Dial(t, r.conn.NATS().ConnectedUrl())
	lost := make(chan error, 1)
	go func() {
		_, err := remote.NewClient(conn).Call(context.Background(), newCall(t, "child_hang", args{"file": r.file("f")}))
		lost <- err
	}()
	r.began(t, "f")
	conn.NATS().Close()
	isFault(t, <-lost, fault.ToolLost)
}

// If one of two instances ends during a call, the call is lost, and later ones go to the other.
func TestTwoInstances(t *testing.T) {
	t.Parallel()
	conn := bustest.Single(t)
	url := conn.NATS().ConnectedUrl()
	cfg := service.Config{Servers: []mcpservers.Config{program("child", "good")}}
	a := launch(t, cfg, service.Deps{Conn: bustest.Dial(t, url)})
	b := launch(t, cfg, service.Deps{Conn: bustest.Dial(t, url)})
	a.await(t, "child_echo")
	b.await(t, "child_echo")
	pids := map[string]bool{a.call(t, "child_pid", nil): true, b.call(t, "child_pid", nil): true}
	require.Len(t, pids, 2)
	a.Caller = remote.NewClient(conn)
	for len(pids) > 0 { // Both answer eventually.
		delete(pids, a.call(t, "child_pid", nil))
	}
	require.NoError(t, a.svc.Drain(t.Context()))
	a.svc.Stop()
	want := b.call(t, "child_pid", nil)
	for range 10 {
		require.Equal(t, want, a.call(t, "child_pid", nil))
	}
	b.svc.Stop()
	a.fails(t, newCall(t, "child_pid", nil), fault.ToolsDown)
}

func TestMetrics(t *testing.T) {
	r := start(t, service.Config{Builtin: true, Servers: []mcpservers.Config{program("child", "good")}})
	r.await(t, "child_echo")
	r.call(t, "workspace_list_files", nil)
	_, err := r.Call(t.Context(), newCall(t, "child_fail", nil))
	require.NoError(t, err)
	r.fails(t, newCall(t, "child_die", nil), fault.ToolLost)
	r.fails(t, newCall(t, "no_such_tool", nil), fault.ToolNotFound)
	telemetry.Lint(t, r.reg)
	families, err := r.reg.Gather()
	require.NoError(t, err)
	got := map[string]bool{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "waggle_tools_calls_total" {
				got[m.GetLabel()[1].GetValue()+" "+m.GetLabel()[0].GetValue()+" "+strconv.Itoa(int(m.GetCounter().GetValue()))] = true
			}
		}
	}
	require.Equal(t, map[string]bool{
		"workspace ok 1": true, "child tool_error 1": true, "child tool_lost 1": true, "none tool_not_found 1": true,
	}, got)
}

// The service works with the SDK's own example servers, built and unmodified.
func TestServersOfTheSDK(t *testing.T) {
	t.Parallel()
	bin := publicDir(t)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/",
		"github.com/modelcontextprotocol/go-sdk/examples/server/memory",
		"github.com/modelcontextprotocol/go-sdk/examples/server/everything")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	r := start(t, service.Config{Servers: []mcpservers.Config{
		{Name: "memory", Command: []string{filepath.Join(bin, "memory")}, Timeout: 30 * time.Second},
		{Name: "everything", Command: []string{filepath.Join(bin, "everything")}},
	}})
	r.await(t, "memory_create_entities")
	r.await(t, "everything_greet")
	require.Contains(t, r.call(t, "everything_greet", args{"name": "Waggle"}), "Waggle")
	r.call(t, "memory_create_entities", args{"entities": []any{args{"name": "bee", "entityType": "animal", "observations": []string{"dances"}}}})
	require.Contains(t, r.call(t, "memory_read_graph", nil), "dances")
}
