package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/sandbox"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
)

const (
	// hostileProgram names the program of testdata/hostile for a test process that cannot build it.
	hostileProgram = "WAGGLE_TEST_HOSTILE"
	// mark is the variable that finds a hostile program's processes.
	mark = "WAGGLE_TEST_MARK"
	// user is the one of the images.
	user = 65532
)

// inMemory is a secret in the memory of this process.
var inMemory = []byte("a secret that only this process may see")

// hostile returns the built program of testdata/hostile.
var hostile = sync.OnceValues(func() (string, error) {
	if program := os.Getenv(hostileProgram); program != "" {
		return program, nil
	}
	dir, err := built.make()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "hostile")
	out, err := exec.Command("go", "build", "-o", program, "./testdata/hostile").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

// attacked is what a hostile program attacks. Its files are open to every user, so that nothing but the sandbox protects
// them.
type attacked struct {
	program string
	dir     string
	files   []string
	victim  *exec.Cmd
	base    target
}

// target is the argument of every tool of the program.
type target struct {
	PID      int    `json:"pid"`
	Victim   int    `json:"victim"`
	Address  uint64 `json:"address"`
	Secret   string `json:"secret"`
	File     string `json:"file"`
	Folder   string `json:"folder"`
	TCP      string `json:"tcp"`
	UDP      string `json:"udp"`
	Unix     string `json:"unix"`
	Abstract string `json:"abstract"`
	N        int    `json:"n"`
}

func newAttacked(t *testing.T) *attacked {
	t.Helper()
	program, err := hostile()
	require.NoError(t, err)
	a := &attacked{program: program, dir: publicDir(t)}
	for _, name := range []string{"waggle.yaml", "data/state.key", "data/jetstream/1.blk", "other/notes.txt", "home/.ssh/id_ed25519"} {
		file := filepath.Join(a.dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
		require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\nexit 0\n"), 0o600))
		for d := file; d != a.dir; d = filepath.Dir(d) {
			require.NoError(t, os.Chmod(d, 0o777))
		}
		a.files = append(a.files, file)
	}
	require.NoError(t, os.Chmod(a.dir, 0o777))
	a.victim = exec.Command("sleep", "600")
	a.victim.Env = append(os.Environ(), "VICTIM_SECRET=x")
	require.NoError(t, a.victim.Start())
	t.Cleanup(func() { _ = a.victim.Process.Kill(); _ = a.victim.Wait() })
	a.base = target{
		PID: os.Getpid(), Victim: a.victim.Process.Pid, Secret: string(inMemory),
		Address: uint64(uintptr(unsafe.Pointer(&inMemory[0]))), File: a.files[0], Folder: filepath.Join(a.dir, "data"),
	}
	a.listen(t)
	return a
}

// listen opens the sockets that a program may not reach.
func (a *attacked) listen(t *testing.T) {
	t.Helper()
	accept := func(l net.Listener, err error) net.Listener {
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	a.base.TCP = accept(net.Listen("tcp", "127.0.0.1:0")).Addr().String()
	a.base.Unix = filepath.Join(a.dir, "s")
	accept(net.Listen("unix", a.base.Unix))
	a.base.Abstract = fmt.Sprintf("@waggle-test-%d-%d", os.Getpid(), nextID.Add(1))
	accept(net.Listen("unix", a.base.Abstract))
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = udp.Close() })
	a.base.UDP = udp.LocalAddr().String()
	datagrams, err := net.ListenPacket("unixgram", a.base.Unix+".dgram")
	require.NoError(t, err)
	t.Cleanup(func() { _ = datagrams.Close() })
	for _, s := range []string{a.base.Unix, a.base.Unix + ".dgram"} {
		require.NoError(t, os.Chmod(s, 0o777))
	}
}

// Limits of hostile programs, and attacks on them that a machine for tests can bear.
var (
	tight   = sandbox.Limits{Processes: 64, Memory: 256 << 20, FileSize: 8 << 20}
	beyond  = map[string]int{"fork_bomb": 100, "big_memory": 384 << 20, "fill_disk": 16 << 20}
	perFile = []string{"read_file", "write_file", "truncate_file"}
)

// run calls every tool of the program and returns the names of those that succeeded, ordered.
func (a *attacked) run(t *testing.T, settings sandbox.Settings) []string {
	t.Helper()
	settings.Limits = tight
	r := start(t, service.Config{Servers: []mcpservers.Config{{
		Name: "h", Command: []string{a.program}, Sandbox: settings, Timeout: callLimit,
	}}})
	r.await(t, "h_read_file")
	list, err := r.List(context.Background(), id.DefaultTenant)
	require.NoError(t, err)
	require.Greater(t, len(list), 50)
	var succeeded []string
	for _, tool := range list {
		name := strings.TrimPrefix(tool.Name, "h_")
		if name == "leave_process" {
			continue // TestNoDescendantIsLeftOfASandbox looks for the end of the process.
		}
		for _, file := range a.files {
			tg := a.base
			tg.File, tg.N = file, beyond[name]
			if a.attack(t, r, tool.Name, tg) && !slices.Contains(succeeded, name) {
				succeeded = append(succeeded, name)
			}
			if !slices.Contains(perFile, name) {
				break
			}
		}
	}
	slices.Sort(succeeded)
	return succeeded
}

// attack reports whether an attack succeeded. A program that dies of it has failed.
func (a *attacked) attack(t *testing.T, r *rig, tool string, tg target) bool {
	t.Helper()
	raw, err := json.Marshal(tg)
	require.NoError(t, err)
	c := newCall(t, tool, nil)
	c.Arguments = raw
	res, err := r.Call(context.Background(), c)
	t.Logf("%s: %s %v", tool, res.Text, err)
	return err == nil && !res.IsError && res.Text == "succeeded"
}

// unharmed checks that an attack changed nothing.
func (a *attacked) unharmed(t *testing.T) {
	t.Helper()
	for _, f := range a.files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		require.Equal(t, "#!/bin/sh\nexit 0\n", string(b), f)
	}
	require.True(t, alive(a.victim.Process.Pid))
}

// marked returns the processes with the mark.
func marked(t *testing.T, value string) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(mark+"="+value)) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}

// asUser runs tests of this binary as the user of the images.
func asUser(t *testing.T, tests string) {
	t.Helper()
	program, err := hostile()
	require.NoError(t, err)
	dir := publicDir(t)
	require.NoError(t, os.Chmod(dir, 0o777))
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.v", "-test.count=1", "-test.run", tests)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, hostileProgram + "=" + program, "GORACE=" + race}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	require.Contains(t, string(out), "--- PASS")
}
