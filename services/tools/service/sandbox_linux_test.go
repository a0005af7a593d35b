package service_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/waggle-dev/waggle/internal/sandbox"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
)

// No attack of a program in a sandbox succeeds, with all layers and with those of a container that forbids namespaces.
func TestHostileProgramInASandbox(t *testing.T) {
	for name, without := range map[string][]sandbox.Layer{
		"all layers": nil, "as in a container": {sandbox.Namespaces},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttacked(t)
			require.Empty(t, a.run(t, sandbox.Settings{Mode: sandbox.Require, Without: without}))
			a.unharmed(t)
		})
	}
}

// A program with a network reaches the ports of its settings, and nothing else changes.
func TestHostileProgramWithANetwork(t *testing.T) {
	for name, without := range map[string][]sandbox.Layer{
		"all layers": nil, "as in a container": {sandbox.Namespaces},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttacked(t)
			require.Equal(t, []string{"send_udp"}, a.run(t, sandbox.Settings{Mode: sandbox.Require, Network: true, Without: without}))
			a.unharmed(t)
		})
	}
}

// everyone lists attacks that succeed for every user without a sandbox.
var everyone = []string{
	"big_memory", "change_mode", "change_mode_2", "connect_abstract", "connect_tcp", "connect_unix", "create_file", "execute_file", "fill_disk", "find_secret",
	"fork_bomb", "list_fds", "list_folder", "listen", "listen_without_bind", "multipath_tcp", "new_namespace_by_clone3",
	"open_cwd", "pidfd_getfd", "process_vm_readv", "process_vm_writev", "ptrace", "read_by_hardlink", "read_by_magic_link",
	"read_by_rename", "read_by_symlink", "read_cmdline", "read_environ", "read_file", "read_maps", "read_mem", "read_victim",
	"send_udp", "shared_memory", "signal_by_pidfd", "signal_parent", "signal_victim", "truncate_file", "unshare_user", "write_file",
}

// privileged lists attacks that succeed for root without a sandbox.
var privileged = []string{"become_other", "become_root", "change_root", "make_device", "mount", "packet_socket", "raw_socket", "set_hostname", "unshare_mounts"}

// The attacks are real: they succeed without a sandbox.
func TestHostileProgramWithoutASandbox(t *testing.T) {
	a := newAttacked(t)
	succeeded := a.run(t, sandbox.Settings{Mode: sandbox.Off})
	want := everyone
	if os.Geteuid() == 0 {
		want = slices.Concat(everyone, privileged)
	}
	require.Subset(t, succeeded, want)
}

// ofTheParent lists the attacks on the memory, the environment and the descriptors of the process that started the program.
var ofTheParent = []string{
	"read_environ", "read_maps", "read_mem", "list_fds", "open_cwd", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "read_by_magic_link",
}

// protect protects this process until the end of the test.
func protect(t *testing.T) {
	t.Helper()
	require.NoError(t, sandbox.Protect())
	t.Cleanup(func() { require.NoError(t, unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)) })
}

// A process that protects itself keeps its secrets even without a sandbox, unless the program runs as root.
func TestHostileProgramAndAProtectedProcess(t *testing.T) {
	a := newAttacked(t)
	protect(t)
	succeeded := a.run(t, sandbox.Settings{Mode: sandbox.Off})
	for _, attack := range ofTheParent {
		require.Equal(t, os.Geteuid() == 0, slices.Contains(succeeded, attack), attack)
	}
}

// All of that holds for the user of the images, too.
func TestHostileProgramOfTheUserOfTheImages(t *testing.T) {
	if os.Geteuid() != 0 {
		return // The tests above ran as an ordinary user.
	}
	asUser(t, "^(TestHostileProgram|TestNoDescendantIsLeftOfASandbox|TestKillingTheServiceKillsItsSandboxes|TestAGapCostsWhatItNames|TestRequireRefusesAGap)")
}

// No process is left of a program that leaves its process group, with the layers of either machine.
func TestNoDescendantIsLeftOfASandbox(t *testing.T) {
	for name, settings := range map[string]sandbox.Settings{
		"all layers": {}, "as in a container": {Without: []sandbox.Layer{sandbox.Namespaces}}, "off": {Mode: sandbox.Off},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttacked(t)
			value := filepath.Base(a.dir) + a.base.TCP
			r := start(t, service.Config{Servers: []mcpservers.Config{{
				Name: "h", Command: []string{a.program}, Env: map[string]string{mark: value}, Timeout: callLimit,
				Sandbox: settings,
			}}})
			r.await(t, "h_leave_process")
			a.attack(t, r, "h_leave_process", a.base)
			require.NotEmpty(t, marked(t, value))
			r.svc.Stop()
			if settings.Mode != sandbox.Off {
				require.Eventually(t, func() bool { return len(marked(t, value)) == 0 }, maxWait, tick)
				return
			}
			left := marked(t, value)
			require.Len(t, left, 1, "the attack is real")
			pid, err := strconv.Atoi(left[0])
			require.NoError(t, err)
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		})
	}
}

// A missing layer costs exactly the attacks that its gap names, and prefer starts the program all the same.
func TestAGapCostsWhatItNames(t *testing.T) {
	protect(t)
	onFiles := []string{"change_mode", "change_mode_2", "create_file", "execute_file", "list_folder", "read_file", "read_by_symlink", "truncate_file", "write_file"}
	for name, c := range map[string]struct {
		without []sandbox.Layer
		costs   []string
	}{
		"Landlock":                {[]sandbox.Layer{sandbox.Landlock}, []string{"execute_file", "list_folder", "read_by_symlink", "read_file"}},
		"Landlock and namespaces": {[]sandbox.Layer{sandbox.Landlock, sandbox.Namespaces}, slices.DeleteFunc(slices.Clone(onFiles), func(s string) bool { return strings.HasPrefix(s, "change_mode") })},
		"seccomp":                 {[]sandbox.Layer{sandbox.Seccomp}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttacked(t)
			succeeded := a.run(t, sandbox.Settings{Without: c.without})
			for _, attack := range onFiles {
				require.Equal(t, slices.Contains(c.costs, attack), slices.Contains(succeeded, attack), "%s: %v", attack, succeeded)
			}
			require.NotContains(t, succeeded, "connect_tcp")
			require.NotContains(t, succeeded, "read_mem")
			require.NotContains(t, succeeded, "read_environ")
		})
	}
}

// sandboxHost is the mode of a process that runs a program in a sandbox until it is killed. Its variable lists missing layers.
const sandboxHost = "sandbox host"

func init() {
	moreModes[sandboxHost] = func() {
		var without []sandbox.Layer
		for layer := range strings.FieldsSeq(os.Getenv("WITHOUT")) {
			without = append(without, sandbox.Layer(layer))
		}
		svc, err := service.New(service.Config{Servers: []mcpservers.Config{{
			Name: "h", Command: []string{os.Getenv(hostileProgram)}, Env: map[string]string{mark: os.Getenv("VALUE")},
			Sandbox: sandbox.Settings{Without: without},
		}}}, service.Deps{})
		if err != nil || svc.Start(context.Background()) != nil {
			os.Exit(1)
		}
		select {}
	}
}

// The end of a killed service is that of its programs in sandboxes.
func TestKillingTheServiceKillsItsSandboxes(t *testing.T) {
	for name, without := range map[string]string{"all layers": "", "as in a container": string(sandbox.Namespaces)} {
		t.Run(name, func(t *testing.T) {
			a := newAttacked(t)
			value := "killed" + a.base.TCP
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), childMode+"="+sandboxHost, hostileProgram+"="+a.program, "WITHOUT="+without, "VALUE="+value, "TMPDIR="+a.dir)
			require.NoError(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			require.Eventually(t, func() bool { return len(marked(t, value)) > 0 }, maxWait, tick)
			require.NoError(t, cmd.Process.Kill())
			require.Eventually(t, func() bool { return len(marked(t, value)) == 0 }, maxWait, tick)
		})
	}
}

// A server that the machine cannot confine does not start under require, and says so at once.
func TestRequireRefusesAGap(t *testing.T) {
	for name, without := range map[string][]sandbox.Layer{
		"Landlock": {sandbox.Landlock}, "seccomp": {sandbox.Seccomp},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttacked(t)
			r := start(t, service.Config{Builtin: true, Servers: []mcpservers.Config{{
				Name: "h", Command: []string{a.program}, Sandbox: sandbox.Settings{Mode: sandbox.Require, Without: without},
			}}})
			require.Eventually(t, func() bool {
				_, err := r.Call(t.Context(), newCall(t, "h_read_file", nil))
				f := isFault(t, err, fault.ToolsDown)
				return f.Message == "The tool server h is not running: its machine cannot confine it as tools.sandbox requires. Nothing was run."
			}, maxWait, tick)
			require.Contains(t, r.call(t, "workspace_list_files", nil), "notes.md")
		})
	}
}
