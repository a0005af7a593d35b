package service_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
)

// A server that floods, babbles or breaks the protocol loses its connection: its call ends, and other servers do not notice.
func TestAHostileServerHurtsOnlyItsOwnCalls(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"flood_line", "flood_notes", "flood_long", "bad_json", "bad_rpc", "die"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			r := start(t, service.Config{Servers: []mcpservers.Config{program("bad", "good"), program("neighbour", "good")}})
			r.await(t, "bad_echo")
			r.await(t, "neighbour_echo")
			pid, err := strconv.Atoi(r.call(t, "bad_pid", nil))
			require.NoError(t, err)
			neighbour := r.call(t, "neighbour_pid", nil)

			var calls sync.WaitGroup
			calls.Go(func() {
				for i := range 20 {
					text := fmt.Sprint(i)
					res, err := r.Call(context.Background(), newCall(t, "neighbour_echo", args{"text": text}))
					if err != nil || res.Text != text {
						t.Errorf("the neighbour is disturbed: %v", err)
					}
				}
			})
			r.fails(t, newCall(t, "bad_"+tool, nil), fault.ToolLost)
			calls.Wait()

			dies(t, pid)
			require.Equal(t, "back", r.call(t, "bad_echo", args{"text": "back"}))
			require.Equal(t, neighbour, r.call(t, "neighbour_pid", nil), "the neighbour was not restarted")
		})
	}
}

// Servers that never open an MCP session harm neither the start nor the others, and leave no process behind.
func TestServersThatDoNotStart(t *testing.T) {
	t.Parallel()
	r := start(t, service.Config{Builtin: true, Servers: []mcpservers.Config{
		program("exits", "exits"), program("deaf", "deaf"), program("flood", "flood"),
		{Name: "missing", Command: []string{"/nonexistent/program"}},
		{Name: "nowhere", URL: "http://127.0.0.1:1/mcp"},
		program("banner", "banner"), program("legacy", "legacy", "STARTS", t.TempDir()+"/starts"),
	}})
	r.await(t, "banner_echo")
	r.await(t, "legacy_echo")
	require.Contains(t, r.call(t, "workspace_list_files", nil), "notes.md")
	c := newCall(t, "exits_echo", nil)
	c.Timeout = time.Second
	r.fails(t, c, fault.ToolsDown)
	const states = `
# HELP waggle_tools_servers Tool servers by state.
# TYPE waggle_tools_servers gauge
waggle_tools_servers{state="connected"} 3
waggle_tools_servers{state="connecting"} 5
waggle_tools_servers{state="stopped"} 0
`
	require.Eventually(t, func() bool {
		return testutil.GatherAndCompare(r.reg, strings.NewReader(states), "waggle_tools_servers") == nil
	}, maxWait, tick)
	r.svc.Stop()
}

// A server's descendants end with it, for any reason of its end.
func TestNoDescendantIsLeft(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, r *rig, pid int){
		"the call times out": func(t *testing.T, r *rig, _ int) {
			r.timesOut(t, "child_spawn", "more")
		},
		"the server is killed": func(t *testing.T, _ *rig, pid int) {
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		},
		"the server exits": func(t *testing.T, r *rig, _ int) {
			r.fails(t, newCall(t, "child_die", nil), fault.ToolLost)
		},
		"the service stops": func(_ *testing.T, r *rig, _ int) { r.svc.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := t.TempDir() + "/pids"
			r := start(t, service.Config{Servers: []mcpservers.Config{program("child", "grandchildren", "PIDS", file)}})
			r.await(t, "child_echo")
			pid, err := strconv.Atoi(r.call(t, "child_pid", nil))
			require.NoError(t, err)
			pids := append(numbers(t, file)[:2], pid)
			for _, p := range pids {
				require.True(t, alive(p))
				group, err := syscall.Getpgid(p)
				require.NoError(t, err)
				require.Equal(t, pid, group)
			}
			require.NotEqual(t, syscall.Getpgrp(), pid)
			end(t, r, pid)
			if more := r.file("more"); r.ran(t, "more") > 0 {
				lines := numbers(t, more)
				pids = append(pids, lines...)
			}
			for _, p := range pids {
				dies(t, p)
			}
		})
	}
}

// numbers returns the lines of a file that are numbers.
func numbers(t *testing.T, file string) []int {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var out []int
	for line := range strings.FieldsSeq(string(b)) {
		if n, err := strconv.Atoi(line); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// The service kills a server that ignores the end of its input and SIGTERM.
func TestStopEndsAStubbornServer(t *testing.T) {
	t.Parallel()
	r := start(t, service.Config{Servers: []mcpservers.Config{program("child", "stubborn")}})
	r.await(t, "child_echo")
	pid, err := strconv.Atoi(r.call(t, "child_pid", nil))
	require.NoError(t, err)
	r.svc.Stop()
	require.False(t, alive(pid))
}

// A killed process leaves no servers behind.
func TestKillingTheServiceKillsItsServers(t *testing.T) {
	t.Parallel()
	r := &rig{dir: t.TempDir()}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childMode+"=host", "PIDS="+r.file("pids"))
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	r.began(t, "pids")
	pid := numbers(t, r.file("pids"))[0]
	require.True(t, alive(pid))
	require.NoError(t, cmd.Process.Kill())
	dies(t, pid)
}

// The workspace server also runs as a program, and a server may have no tools.
func TestTheWorkspaceAsAProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/files"
	r := start(t, service.Config{Servers: []mcpservers.Config{program("files", "workspace", "DIR", dir), program("empty", "no tools")}})
	require.True(t, r.await(t, "files_list_files").ReadOnly)
	require.Contains(t, r.call(t, "files_list_files", nil), "notes.md")
	require.Equal(t, "files leads out of the workspace", strings.ReplaceAll(r.text(t, "files_read_file", args{"path": "../files"}), "../", ""))
	connected := `
# HELP waggle_tools_servers Tool servers by state.
# TYPE waggle_tools_servers gauge
waggle_tools_servers{state="connected"} 2
waggle_tools_servers{state="connecting"} 0
waggle_tools_servers{state="stopped"} 0
`
	require.Eventually(t, func() bool {
		return testutil.GatherAndCompare(r.reg, strings.NewReader(connected), "waggle_tools_servers") == nil
	}, maxWait, 20*time.Millisecond)
}

// A program sees four variables and the configured ones, and only its three descriptors, even if this process holds one
// without close-on-exec.
func TestNothingIsInherited(t *testing.T) {
	t.Setenv("CANARY_SECRET", "must not be seen")
	t.Setenv("LANG", "C.UTF-8")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	defer file.Close()
	_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, file.Fd(), syscall.F_SETFD, 0)
	require.Zero(t, errno)

	r := start(t, service.Config{Servers: []mcpservers.Config{program("child", "good", "TOKEN", "configured", "HOME", "/own/home")}})
	r.await(t, "child_echo")
	env := strings.Split(r.call(t, "child_env", nil), "\n")
	var names []string
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	allowed := []string{"PATH", "HOME", "LANG", "TMPDIR", "TOKEN", "GORACE", childMode}
	require.Subset(t, allowed, names)
	require.Contains(t, env, "LANG=C.UTF-8")
	require.Contains(t, env, "TOKEN=configured")
	require.Contains(t, env, "HOME=/own/home")
	require.NotContains(t, r.call(t, "child_fds", nil), "socket:")
}

// The service accepts a server's changes to its own tools only.
func TestToolsChange(t *testing.T) {
	t.Parallel()
	r := start(t, service.Config{Servers: []mcpservers.Config{program("child", "good")}})
	r.await(t, "child_grow")
	require.Equal(t, "ok", r.call(t, "child_grow", args{"text": "brand_new"}))
	r.await(t, "child_brand_new")
	require.Equal(t, "new", r.call(t, "child_brand_new", nil))
	r.fails(t, newCall(t, "child_grow", nil), fault.ToolNotFound)
}

// If one call does not react to its cancellation, the other calls of the server finish before the service kills it.
func TestADeafCallDoesNotTakeOthersWithIt(t *testing.T) {
	t.Parallel()
	r := start(t, service.Config{Servers: []mcpservers.Config{program("child", "good")}})
	r.await(t, "child_echo")
	pid, err := strconv.Atoi(r.call(t, "child_pid", nil))
	require.NoError(t, err)
	gate := r.file("gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	var other sync.WaitGroup
	other.Go(func() {
		res, err := r.Call(context.Background(), newCall(t, "child_gate", args{"text": gate, "file": r.file("waits")}))
		if err != nil || res.Text != "open" {
			t.Errorf("%q, %v", res.Text, err)
		}
	})
	r.began(t, "waits")
	r.timesOut(t, "child_hang", "hang")
	require.NotEqual(t, strconv.Itoa(pid), r.call(t, "child_pid", nil), "new calls go to a new server")
	require.NoError(t, os.WriteFile(gate, []byte("open"), 0o600))
	other.Wait()
	dies(t, pid)
}

// The service does not kill a server that it trusts to stop calls.
func TestKeepOnCancel(t *testing.T) {
	t.Parallel()
	cfg := program("child", "good")
	cfg.KeepOnCancel = true
	r := start(t, service.Config{Servers: []mcpservers.Config{cfg}})
	r.await(t, "child_echo")
	pid := r.call(t, "child_pid", nil)
	r.timesOut(t, "child_hang", "hang")
	require.Equal(t, pid, r.call(t, "child_pid", nil))
}

// The operator's lists of tools count, with or without the server's own hints.
func TestHints(t *testing.T) {
	t.Parallel()
	listed, alone := program("listed", "good"), program("alone", "good")
	listed.Idempotent, listed.ReadOnly = []string{"effect"}, []string{"fail"}
	alone.Idempotent, alone.IgnoreHints = []string{"effect"}, true
	r := start(t, service.Config{Servers: []mcpservers.Config{listed, alone}})
	require.True(t, r.await(t, "listed_effect").Idempotent)
	require.True(t, r.await(t, "listed_fail").ReadOnly)
	require.True(t, r.await(t, "listed_echo").ReadOnly)
	require.True(t, r.await(t, "alone_effect").Idempotent)
	require.False(t, r.await(t, "alone_echo").ReadOnly)
	require.False(t, r.await(t, "alone_die_once").Idempotent)
}

func TestConfiguration(t *testing.T) {
	for want, cfg := range map[string]service.Config{
		"tools.max_calls":             {MaxCalls: -1},
		"tools.max_tenant_calls":      {MaxCalls: 4, MaxTenantCalls: 5},
		"tools.servers[0].command":    {Servers: []mcpservers.Config{{Name: "a"}}},
		"tools.servers[0].url":        {Servers: []mcpservers.Config{{Name: "a", Command: []string{"x"}, URL: "http://x"}}},
		"tools.servers[1].url":        {Servers: []mcpservers.Config{program("a", ""), {Name: "b", URL: "ftp://x"}}},
		"tools.servers[0].timeout":    {Servers: []mcpservers.Config{{Name: "a", Command: []string{"x"}, Timeout: -1}}},
		"tools.servers[0].output_cap": {Servers: []mcpservers.Config{{Name: "a", Command: []string{"x"}, OutputCap: 1 << 30}}},
		`name "a.b"`:                  {Servers: []mcpservers.Config{program("a.b", "")}},
		`"workspace" and "workspace"`: {Builtin: true, Servers: []mcpservers.Config{program("workspace", "")}},
		`"a_b" and "a"`:               {Servers: []mcpservers.Config{program("a", ""), program("a_b", "")}},
	} {
		_, err := service.New(cfg, service.Deps{})
		require.ErrorContains(t, err, want)
	}
	file := t.TempDir() + "/file"
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	svc, err := service.New(service.Config{Builtin: true, Workspace: file}, service.Deps{})
	require.NoError(t, err)
	require.ErrorContains(t, svc.Start(t.Context()), "workspace folder")
	svc.Stop()
}
