package sandbox

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// launch runs a program in a sandbox and returns its output.
func launch(t *testing.T, c Command) (string, error) {
	t.Helper()
	require.NoError(t, c.Settings.Complete())
	c.Private = []string{"HOME", "TMPDIR"}
	c.Env = append(c.Env, "PATH=/usr/local/bin:/usr/bin:/bin", "GREETING=hello")
	l, err := Prepare(c)
	require.NoError(t, err)
	private := l.private
	defer func() { l.Close(); require.NoDirExists(t, private) }()
	var out bytes.Buffer
	r, w, err := os.Pipe()
	require.NoError(t, err)
	l.Cmd.Stdout, l.Cmd.Stderr = w, w
	err = l.Start()
	require.NoError(t, w.Close())
	if err != nil {
		return "", err
	}
	_, err = io.Copy(&out, r)
	require.NoError(t, err)
	return out.String(), l.Cmd.Wait()
}

// folder returns a folder that the program owns.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "w")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(dir, 1234, 1234))
	}
	return dir
}

// kernels are the machines that programs have to work on.
var kernels = map[string][]Layer{
	"all layers": nil, "as in a container": {Namespaces}, "no Landlock": {Landlock}, "limits only": {Namespaces, Landlock, Seccomp},
}

const (
	shell  = `set -e; echo "$GREETING"; pwd; echo a >"$TMPDIR/t"; echo b >file; cat file "$HOME/t" /etc/hosts >/dev/null; ls -l >/dev/null; date >/dev/null; (echo sub; true | cat); mkdir d; mv file d/; ln -s d l; rm -r l d`
	python = `
import concurrent.futures, hashlib, json, multiprocessing, os, socket, sqlite3, ssl, subprocess, tempfile, threading, time
print(os.environ["GREETING"]); print(os.getcwd())
open("file", "w").write("x")
tempfile.NamedTemporaryFile().write(b"x")
assert subprocess.run(["sh", "-c", "echo sub"], capture_output=True).stdout == b"sub\n"
assert list(concurrent.futures.ThreadPoolExecutor(8).map(abs, [-1])) == [1]
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
db = sqlite3.connect("db"); db.execute("create table t(x)"); db.commit()
os.urandom(8); ssl.create_default_context(); hashlib.sha256()
r, w = multiprocessing.Pipe(); w.send(1); assert r.recv() == 1`
	node = `
const fs = require("fs"), c = require("child_process"), w = require("worker_threads"), crypto = require("crypto")
console.log(process.env.GREETING + "\n" + process.cwd())
fs.writeFileSync("file", "x"); fs.readFileSync("file"); fs.mkdtempSync(require("os").tmpdir() + "/t"); crypto.randomBytes(8)
if (c.execSync("echo sub").toString() != "sub\n") throw 1
if (w.isMainThread) new w.Worker("require('worker_threads').parentPort.postMessage(1)", {eval: true}).on("message", m => { if (m != 1) throw m })
fetch("data:text/plain,hi").then(r => r.text()).then(t => { if (t != "hi") throw t })
fs.watch(".").close()
fs.promises.readdir(".").catch(e => { throw e })`
)

// Ordinary programs of every kernel write their own folder and temporary files, and start threads and processes.
func TestOrdinaryPrograms(t *testing.T) {
	programs := map[string][]string{"sh": {"/bin/sh", "-c", shell}}
	for name, args := range map[string][]string{"python3": {"/usr/bin/python3", "-c", python}, "node": {"/usr/bin/node", "-e", node}} {
		if _, err := os.Stat(args[0]); err == nil {
			programs[name] = args
		}
	}
	for kernel, without := range kernels {
		for name, args := range programs {
			t.Run(name+" "+kernel, func(t *testing.T) {
				t.Parallel()
				dir := folder(t)
				out, err := launch(t, Command{Args: args, Dir: dir, Settings: Settings{Without: without}})
				require.NoError(t, err, out)
				require.Contains(t, out, "hello\n"+dir+"\n")
			})
		}
	}
}

// A program that uses a processor for longer than its limit is killed, on every kernel.
func TestProcessorTimeIsLimited(t *testing.T) {
	for kernel, without := range kernels {
		t.Run(kernel, func(t *testing.T) {
			t.Parallel()
			const busy = "i=0; while [ $i -lt 100000000 ]; do i=$((i+1)); done; echo done" // about a minute
			out, err := launch(t, Command{
				Args: []string{"/bin/sh", "-c", "echo begun; " + busy}, Dir: folder(t), Settings: Settings{Without: without, Limits: Limits{CPU: time.Second}},
			})
			require.Error(t, err)
			require.Equal(t, "begun\n", out)
		})
	}
}

// A program sees the paths of its settings and cannot write those that are for reading.
func TestPaths(t *testing.T) {
	t.Parallel()
	read, write := folder(t), folder(t)
	require.NoError(t, os.Chmod(read, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(read, "r"), []byte("readable"), 0o666))
	script := "cat " + read + "/r; echo x >" + write + "/w && echo written; echo x 2>/dev/null >" + read + "/w || echo refused"
	out, err := launch(t, Command{Args: []string{"sh", "-c", script}, Dir: write, Settings: Settings{Read: []string{read}, Write: []string{write}}})
	require.NoError(t, err, out)
	require.Equal(t, "readablewritten\nrefused\n", out)
}

// A program cannot put a link in the place of a path of its settings and have the next start open what the link names.
func TestPathsThatTheProgramCouldReplace(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	sub := filepath.Join(dir, "sub")
	require.NoError(t, os.Symlink("/etc", sub))
	for _, s := range []Settings{{Read: []string{sub}}, {Write: []string{sub}}} {
		_, err := Prepare(Command{Args: []string{"/bin/sh"}, Dir: dir, Settings: s})
		require.ErrorContains(t, err, "the program may write "+dir+" and replace "+sub)
	}
	_, err := Prepare(Command{Args: []string{"/bin/sh"}, Dir: sub, Settings: Settings{Write: []string{dir}}})
	require.ErrorContains(t, err, "replace "+sub)
	l, err := Prepare(Command{Args: []string{"/bin/sh"}, Dir: dir, Settings: Settings{Write: []string{dir}}})
	require.NoError(t, err)
	l.Close()
}

// Errors of a start say what is wrong, and nothing is left.
func TestProgramsThatDoNotStart(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	broken := filepath.Join(dir, "broken")
	require.NoError(t, os.WriteFile(broken, []byte{0x7f, 'E', 'L', 'F'}, 0o755))
	require.NoError(t, os.Chmod(dir, 0o755))
	_, err := launch(t, Command{Args: []string{broken}})
	require.ErrorContains(t, err, "execute "+broken+": exec format error")
	_, err = launch(t, Command{Args: []string{"/bin/sh"}, Settings: Settings{Read: []string{"/does/not/exist"}}})
	require.ErrorContains(t, err, "open /does/not/exist: no such file or directory")
	_, err = Prepare(Command{Args: []string{"/does/not/exist"}})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// The end of a program is that of the launch, and a signal to its group reaches it.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, without := range kernels {
		_, err := launch(t, Command{Args: []string{"sh", "-c", "exit 7"}, Settings: Settings{Without: without}})
		require.Equal(t, 7, exitCode(err))
	}
	s := Settings{}
	require.NoError(t, s.Complete())
	l, err := Prepare(Command{Args: []string{"sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"}, Env: []string{"PATH=/usr/bin:/bin"}, Settings: s})
	require.NoError(t, err)
	defer l.Close()
	out, err := l.Cmd.StdoutPipe()
	require.NoError(t, err)
	l.Cmd.SysProcAttr.Setpgid = true
	require.NoError(t, l.Start())
	ready := make([]byte, len("ready"))
	_, err = io.ReadFull(out, ready)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(-l.Cmd.Process.Pid, syscall.SIGTERM))
	require.Equal(t, 9, exitCode(l.Cmd.Wait()))
}

func exitCode(err error) int {
	if e, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Wait returns it as it is.
		return e.ExitCode()
	}
	return 0
}

// All of that holds for the user of the images, whose processes hide from each other like those of waggle.
func TestAsTheUserOfTheImages(t *testing.T) {
	if os.Geteuid() != 0 {
		require.NoError(t, Protect())
		out, err := launch(t, Command{Args: []string{"sh", "-c", "echo $GREETING"}})
		require.NoError(t, err, out)
		require.Equal(t, "hello\n", out)
		return
	}
	dir := folder(t)
	require.NoError(t, os.Chown(dir, 65532, 65532))
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run=^Test(AsTheUser|Ordinary|Paths|Programs|Ends|Detect|InAContainer)")
	cmd.Dir, cmd.Env = dir, []string{"TMPDIR=" + dir, "PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=50"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--- PASS: TestAsTheUserOfTheImages")
}

// The features of this machine do not depend on who asks how often.
func TestDetect(t *testing.T) {
	t.Parallel()
	f := Detect()
	require.Equal(t, "linux", f.System)
	require.Equal(t, f, detect())
}
