// Package process starts Waggle as its users do, as separate processes of the built binary, kills them, and finds
// secrets in their output. It also bounds the waits of tests.
package process

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// MaxWait bounds every wait of the end-to-end tests. It is long because two
// cores may have to run a cluster, the services and the race detector at once.
const MaxWait = 90 * time.Second

var build struct {
	once sync.Once
	path string
	err  error
	out  []byte
}

// Binary builds the waggle binary once per test process and returns its path.
// WAGGLE_E2E_BINARY names one that is built already.
func Binary(t testing.TB) string {
	t.Helper()
	build.once.Do(func() {
		if build.path = os.Getenv("WAGGLE_E2E_BINARY"); build.path != "" {
			return
		}
		dir, err := os.MkdirTemp("", "waggle-e2e-")
		if err != nil {
			build.err = err
			return
		}
		build.path = filepath.Join(dir, "waggle")
		cmd := exec.CommandContext(context.Background(), "go", //nolint:gosec // the arguments are ours
			"build", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", build.path, "github.com/waggle-dev/waggle/cmd/waggle")
		build.out, build.err = cmd.CombinedOutput()
	})
	require.NoError(t, build.err, "build the binary: %s", build.out)
	return build.path
}

// Process is one running waggle process.
type Process struct {
	t    testing.TB
	name string
	mute bool
	cmd  *exec.Cmd
	done chan struct{}
	err  error

	mu  sync.Mutex
	out bytes.Buffer
}

// Options say how a process is started.
type Options struct {
	Name  string    // for messages
	Dir   string    // working directory; default a fresh one
	Env   []string  // added to a minimal environment
	Stdin string    // text for the standard input
	Input io.Reader // the standard input, in place of Stdin
	Args  []string

	Program string   // another program than waggle
	Wrap    []string // a command that runs the program: ip netns exec NAME
	Quiet   bool     // its output is long, and not shown when the test fails
	User    int      // the user that runs it; 0 = that of the test
}

// Start starts the binary. The process is killed when the test ends; its output
// is shown if the test has failed.
func Start(t testing.TB, o Options) *Process {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	p := &Process{t: t, name: o.Name, mute: o.Quiet, done: make(chan struct{})}
	if o.Program == "" {
		o.Program = Binary(t)
	}
	line := append(append(append([]string(nil), o.Wrap...), o.Program), o.Args...)
	p.cmd = exec.CommandContext(context.Background(), line[0], line[1:]...) //nolint:gosec // tests start what they have built
	p.cmd.Dir = o.Dir
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + o.Dir, "TMPDIR=" + os.TempDir()}, o.Env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = o.Input, p, p
	if o.Input == nil {
		p.cmd.Stdin = strings.NewReader(o.Stdin)
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if o.User != 0 {
		p.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(o.User), Gid: uint32(o.User)} //nolint:gosec // tests name small numbers
	}
	require.NoError(t, p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(p.cleanup)
	return p
}

// Write collects the process's output.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

// Output returns what the process has printed so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Memory returns the resident bytes of the process.
func (p *Process) Memory() (int, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID()) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kb, err := strconv.Atoi(f[1])
			return kb << 10, err
		}
	}
	return 0, errors.New("no VmRSS")
}

// Stat returns what the kernel's table of processes says of a process, from its state on, or an error for a process that does
// not exist.
func Stat(pid int) ([]string, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(raw), ") ") // the name of the program may hold spaces
	f := strings.Fields(rest)
	if len(f) < 13 {
		return nil, errors.New("the kernel's table of processes has another form")
	}
	return f, nil
}

// Busy returns the processor time that the process has used, in steps of 10 ms.
func (p *Process) Busy() (time.Duration, error) {
	f, err := Stat(p.PID())
	if err != nil {
		return 0, err
	}
	user, err := strconv.Atoi(f[11])
	if err != nil {
		return 0, err
	}
	kernel, err := strconv.Atoi(f[12])
	return time.Duration(user+kernel) * 10 * time.Millisecond, err // USER_HZ is 100 on Linux
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *Process) Kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	p.wait()
}

// Terminate sends SIGTERM and returns the process's exit error.
func (p *Process) Terminate() error {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	p.wait()
	return p.err
}

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) { p.signal(s) }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.done }

// Wait waits until the process has ended by itself and returns its exit error.
func (p *Process) Wait() error {
	p.t.Helper()
	p.wait()
	return p.err
}

func (p *Process) signal(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		require.NoError(p.t, err)
	}
}

func (p *Process) wait() {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(MaxWait):
		require.Fail(p.t, "process does not end", "%s\n%s", p.name, p.Output())
	}
}

func (p *Process) cleanup() {
	select {
	case <-p.done:
	default:
		p.signal(syscall.SIGKILL)
		<-p.done
	}
	if whose := findSecrets(p.name, p.Output()); whose != nil {
		p.t.Errorf("%s has printed %v:\n%s", p.name, whose, p.Output())
	}
	if p.t.Failed() && !p.mute {
		p.t.Logf("--- output of %s:\n%s", p.name, p.Output())
	}
}

// Ready waits until the gateway at addr says that it is ready, or its process ends.
func (p *Process) Ready(addr string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), MaxWait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ready(ctx, addr) {
		select {
		case <-p.done:
			require.Fail(p.t, "process ended before it was ready", "%s: %v\n%s", p.name, p.err, p.Output())
		case <-ctx.Done():
			require.Fail(p.t, "process does not become ready", "%s\n%s", p.name, p.Output())
		case <-tick.C:
		}
	}
}

// Up reports whether the process at addr says that it is ready.
func Up(addr string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), MaxWait)
	defer cancel()
	return ready(ctx, addr)
}

func ready(ctx context.Context, addr string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode == http.StatusOK
}
