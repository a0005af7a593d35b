//go:build nightly

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// userOfImages is the one that runs waggle in containers.
const userOfImages = 65532

// invaded is an installation with two servers whose program is hostile: "boxed" in a sandbox, "bare" without.
type invaded struct {
	t     *testing.T
	user  int // 0 = that of the test
	dir   string
	files map[string]string // contents, by paths, which no program may see or change
	nats  string
	addr  string
	pid   int

	mu    sync.Mutex
	calls []scripted.Call // still to be made
}

// TestAHostileProgramInsideOfUp: a tool program attacks the installation that runs it: memory, environment and descriptors of
// waggle, its configuration, its keys, its data, its bus. No attack succeeds, as the user of the test (a program of root runs
// as another one) and as the user of the images. Memory and environment are closed even to a program without a sandbox.
func TestAHostileProgramInsideOfUp(t *testing.T) {
	users := map[string]int{"the user of the test": 0}
	if os.Geteuid() == 0 {
		users["the user of the images"] = userOfImages
	}
	program := hostileProgram(t)
	for name, user := range users {
		t.Run(name, func(t *testing.T) {
			i := &invaded{t: t, user: user, dir: publicFolder(t)}
			i.start(program)
			require.Empty(t, i.attack("boxed", inSandbox), "of a program in a sandbox")
			if user != 0 || os.Geteuid() != 0 { // root reads the memory of every process
				require.Empty(t, i.attack("bare", ofWaggle), "of a program without a sandbox")
			}
			i.unharmed()
			_, err := nats.Connect(i.nats)
			require.ErrorIs(t, err, nats.ErrAuthorization)
		})
	}
}

// publicFolder returns a new folder that all users may enter.
func publicFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "waggle-e2e-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

// hostileProgram builds the hostile tool server of the tool service's tests.
func hostileProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(publicFolder(t), "hostile")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./testdata/hostile")
	build.Dir = filepath.Join("..", "services", "tools", "service")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// start starts the installation and waits until its programs have offered their tools.
func (i *invaded) start(program string) {
	i.t.Helper()
	binary := filepath.Join(publicFolder(i.t), "waggle")
	raw, err := os.ReadFile(process.Binary(i.t))
	require.NoError(i.t, err)
	require.NoError(i.t, os.WriteFile(binary, raw, 0o755))
	config := filepath.Join(i.dir, "waggle.yaml")
	require.NoError(i.t, os.WriteFile(config, fmt.Appendf(nil, `
tools:
  servers:
    - {name: boxed, command: [%s], approval: never}
    - {name: bare, command: [%s], approval: never, sandbox: "off"}
`, program, program), 0o600))
	if i.user != 0 {
		for _, path := range []string{i.dir, config} {
			require.NoError(i.t, os.Chown(path, i.user, i.user))
		}
	}
	llm, err := scripted.Start("127.0.0.1:0", i.script)
	require.NoError(i.t, err)
	i.t.Cleanup(func() { _ = llm.Close() })
	bus := freeport.Addr(i.t)
	i.addr, i.nats = freeport.Addr(i.t), "nats://"+bus
	p := process.Start(i.t, process.Options{
		Name: "up", Dir: i.dir, Program: binary, User: i.user,
		Env: []string{"OPENAI_BASE_URL=" + llm.OpenAIBaseURL(), "OPENAI_API_KEY=" + process.Canary},
		Args: []string{
			"up", "--config", config, "--addr", i.addr, "--nats-addr", bus, "--data", filepath.Join(i.dir, "data"),
			"--workspace", filepath.Join(i.dir, "workspace"), "--model", "openai:x",
		},
	})
	p.Ready(i.addr)
	i.pid = p.PID()
	i.files = map[string]string{config: ""}
	keys, err := filepath.Glob(filepath.Join(i.dir, "data", "nats-keys", "*"))
	require.NoError(i.t, err)
	require.NotEmpty(i.t, keys)
	for _, file := range append(keys[:1], filepath.Join(i.dir, "data", "state.key")) {
		i.files[file] = ""
	}
	for file := range i.files {
		held, err := os.ReadFile(file)
		require.NoError(i.t, err)
		i.files[file] = string(held)
	}
}

// notYet is what the model says until it is offered the tools of both programs.
const notYet = "The tools are not there yet."

// script makes the next calls, and says how many are left.
func (i *invaded) script(x *scripted.Exchange) scripted.Reply {
	for _, server := range []string{"boxed", "bare"} {
		if !slices.ContainsFunc(x.Prompt.Tools, func(tool model.ToolSpec) bool { return tool.Name == server+"_read_environ" }) {
			return scripted.Stream(scripted.Text(notYet))
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	n := min(8, len(i.calls))
	next := i.calls[:n]
	if i.calls = i.calls[n:]; n == 0 {
		return scripted.Stream(scripted.Text("I have tried."))
	}
	return scripted.Stream(scripted.Calls(0, next...))
}

// Attacks of the program.
var (
	// ofWaggle are those on the memory, the environment and the descriptors of the process that has started the program.
	ofWaggle = []string{"read_environ", "read_maps", "read_mem", "list_fds", "open_cwd", "process_vm_readv", "pidfd_getfd", "read_by_magic_link"}
	// onFiles are tried on each file.
	onFiles = []string{"read_file", "write_file", "truncate_file", "read_by_symlink", "read_by_hardlink", "read_by_rename", "change_mode"}
	// inSandbox are all that concern the installation.
	inSandbox = slices.Concat(ofWaggle, onFiles, []string{"list_folder", "create_file", "connect_tcp", "signal_parent", "ptrace", "find_secret", "read_cmdline"})
)

// attack has the model call the tools of a server, and returns the attacks that succeeded.
func (i *invaded) attack(server string, attacks []string) (succeeded []string) {
	i.t.Helper()
	var calls []scripted.Call
	for _, attack := range attacks {
		for file := range i.files {
			arguments, err := json.Marshal(map[string]any{
				"pid": i.pid, "victim": i.pid, "address": 0x400000, "secret": "\x7fELF", // where the binary begins in memory
				"file": file, "folder": filepath.Join(i.dir, "data"), "tcp": strings.TrimPrefix(i.nats, "nats://"),
			})
			require.NoError(i.t, err)
			calls = append(calls, scripted.Call{ID: fmt.Sprintf("%s%d", server, len(calls)), Name: server + "_" + attack, Arguments: string(arguments)})
			if !slices.Contains(onFiles, attack) {
				break
			}
		}
	}
	i.mu.Lock()
	i.calls = calls
	i.mu.Unlock()
	c := aguiClient{t: i.t, addr: i.addr}
	var thread string
	process.Eventually(i.t, "the model has the tools", func() bool {
		thread = newRun()
		return speech(c.run(thread, newRun(), "attack", nil)) != notYet
	})
	events := history(i.t, place{t: i.t, addr: i.addr}, thread)
	completed, failed := all[event.ToolCompletedData](i.t, events), all[event.ToolFailedData](i.t, events)
	require.Len(i.t, calls, len(completed)+len(failed), "each attack was tried")
	for _, d := range failed {
		require.NotEqual(i.t, "TOOL_NOT_FOUND", d.Code, d.Tool)
	}
	for _, d := range completed {
		if strings.Contains(d.Result, "succeeded") {
			succeeded = append(succeeded, d.Tool)
		}
	}
	return succeeded
}

// unharmed checks that no file has changed, and that waggle runs.
func (i *invaded) unharmed() {
	i.t.Helper()
	for file, held := range i.files {
		now, err := os.ReadFile(file)
		require.NoError(i.t, err)
		require.Equal(i.t, held, string(now), file)
	}
	require.True(i.t, process.Up(i.addr))
}
