//go:build unix

package mcp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/waggle-dev/waggle/internal/sandbox"
)

const (
	// exitGrace is the time in which a program may end by itself after the close of its input, as the MCP specification
	// asks, and again after SIGTERM.
	exitGrace = time.Second
	// lastWords is the time for which the service reads the output of an ended program. The last answer is in the pipe
	// already; only a descendant that left the process group could keep the pipe open.
	lastWords = time.Second
	// killWait is the longest wait for the end of a killed program. The kernel takes milliseconds unless the program hangs
	// in a device.
	killWait = 5 * time.Second
)

var (
	// inherited lists the variables that a program gets from this process' environment.
	inherited = append([]string{"PATH", "LANG"}, private...)
	// private lists those of them that name the private folder of a program in a sandbox.
	private = []string{"HOME", "TMPDIR"}
)

// process is a running program in a process group of its own. When the program ends, in any way, the rest of its group is
// killed.
type process struct {
	launch *sandbox.Launch
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	words  *words
	exited chan struct{} // closed when the program has ended and its group was killed
	silent chan struct{} // closed when all its words were heard, after exited
	err    error         // the error of its end; valid after exited

	kill sync.Once
}

// startProcess starts the program, whose standard error it passes on to the words.
func startProcess(c *Config, w *words) (*process, error) {
	launch, err := sandbox.Prepare(launchOf(c))
	if err != nil {
		return nil, err
	}
	p := &process{launch: launch, cmd: launch.Cmd, words: w, exited: make(chan struct{}), silent: make(chan struct{})}
	theirs, ours, err := openPipes()
	if err != nil {
		launch.Close()
		return nil, err
	}
	p.stdin, p.stdout = ours[0], ours[1]
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if p.cmd.SysProcAttr == nil {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	group(p.cmd.SysProcAttr)
	keepDescriptors()
	err = launch.Start()
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		launch.Close()
		return nil, err
	}
	go p.wait(ours[2])
	return p, nil
}

// launchOf returns the server's command for the sandbox.
func launchOf(c *Config) sandbox.Command {
	return sandbox.Command{
		Args: c.Command, Dir: c.Dir, Env: environment(c.Env), Settings: c.Sandbox,
		Private: slices.DeleteFunc(slices.Clone(private), func(name string) bool {
			_, own := c.Env[name]
			return own
		}),
	}
}

// openPipes returns the two ends of standard input, output and error.
func openPipes() (theirs, ours []*os.File, _ error) {
	for fd := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(theirs)
			closeAll(ours)
			return nil, nil, err
		}
		if fd > 0 {
			r, w = w, r
		}
		theirs, ours = append(theirs, r), append(ours, w)
	}
	return theirs, ours, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // Pipes: closing them loses nothing.
	}
}

// wait reaps the program, kills the rest of its group and lets its pipes end.
func (p *process) wait(stderr *os.File) {
	go func() {
		defer close(p.silent)
		listen(stderr, p.words.hear("tool server wrote to stderr"))
	}()
	p.err = p.cmd.Wait()
	// The group has the program's id. Another group can have that id only after the kernel has gone once through all its
	// numbers since the line above.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	p.launch.Close()
	_ = p.stdin.Close()
	_ = p.stdout.SetReadDeadline(time.Now().Add(lastWords))
	_ = stderr.SetReadDeadline(time.Now().Add(lastWords))
	close(p.exited)
	<-p.silent
	_ = stderr.Close()
}

// stop ends the program and its group: it closes the input and waits, sends SIGTERM and waits, then kills. With now it skips
// the first wait. It returns when the program has ended, or when even killing fails (a broken disk).
func (p *process) stop(now bool) {
	p.kill.Do(func() {
		_ = p.stdin.Close()
		if !now && p.gone(exitGrace) {
			return
		}
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
		if p.gone(exitGrace) {
			return
		}
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	})
	p.gone(killWait)
}

func (p *process) gone(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-t.C:
		return false
	}
}

// endError is the end of a program.
type endError struct {
	how  string
	said string // the last lines of its words
}

// Error implements error. The words are not a part of it: logs have a field for them.
func (e *endError) Error() string { return e.how }

// ending describes the end of a stopped program.
func (p *process) ending() error {
	if !closed(p.exited) {
		return &endError{"the program cannot be killed", p.words.said()}
	}
	<-p.silent // at most lastWords after the end
	if p.err == nil {
		return &endError{"the program ended", p.words.said()}
	}
	return &endError{fmt.Sprintf("the program ended: %s", p.err), p.words.said()}
}

// makeFolder makes a folder, if it is missing, for a program of the owner of its parent.
func makeFolder(parent, name string) (string, error) {
	dir := filepath.Join(parent, name)
	err := os.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if os.Geteuid() != 0 {
		return dir, nil
	}
	var of syscall.Stat_t
	if err := syscall.Stat(parent, &of); err != nil {
		return "", err
	}
	return dir, os.Chown(dir, int(of.Uid), int(of.Gid))
}

// environment returns the few variables that programs need to run at all, and the configured ones.
func environment(configured map[string]string) []string {
	env := []string{}
	for _, name := range inherited {
		if v, ok := os.LookupEnv(name); ok {
			if _, own := configured[name]; !own {
				env = append(env, name+"="+v)
			}
		}
	}
	for name, v := range configured {
		env = append(env, name+"="+v)
	}
	return env
}

// keepDescriptors marks every descriptor above the standard three close-on-exec. Go marks its own; a descriptor that this
// process inherited may lack the mark.
func keepDescriptors() {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // This system has no such folder; Go's own descriptors are marked anyway.
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
