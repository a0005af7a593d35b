package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const (
	// grace is the time that other tests have to end after one has failed.
	grace = 3 * time.Second
	// memory is the limit of a test binary's address space in KiB: a mutant may loop.
	memory = 6 << 20
)

// workshop builds and runs the test binary of one mutant in a folder of its own.
type workshop struct {
	root string // of the workspace
	dir  string
	of   *source
}

// newWorkshop makes the folder. Its name is short: tests put sockets into it.
func newWorkshop(root string, of *source) (*workshop, error) {
	dir, err := folder("", "m")
	if err != nil {
		return nil, err
	}
	return &workshop{root: root, dir: dir, of: of}, nil
}

// folder makes a folder below which other users may have folders, as below the system's for temporary files: tests of sandboxes
// run programs of other users.
func folder(in, prefix string) (string, error) {
	dir, err := os.MkdirTemp(in, prefix)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755) //nolint:gosec // see above
}

// close removes the folder. A test may have left files that cannot be removed: the next one has another folder.
func (w *workshop) close() { _ = os.RemoveAll(w.dir) }

func (w *workshop) binary() string { return filepath.Join(w.dir, "t") }

// build compiles and links the package's tests, with a mutant unless it is nil. The error has the output of the go command.
func (w *workshop) build(ctx context.Context, m *mutant, flags ...string) error {
	args := append([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", w.binary()}, flags...)
	if m != nil {
		overlay, err := w.overlay(m)
		if err != nil {
			return err
		}
		args = append(args, "-overlay="+overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, w.of.path)...) //nolint:gosec // running commands is the purpose
	cmd.Dir = w.root
	group(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go test -c: %w\n%s", err, out)
	}
	return nil
}

// overlay writes the mutant's file, and the one that tells the go command to read it.
func (w *workshop) overlay(m *mutant) (string, error) {
	file, overlay := filepath.Join(w.dir, "mutant.go"), filepath.Join(w.dir, "overlay.json")
	replace := map[string]map[string]string{"Replace": {filepath.Join(w.of.dir, m.File): file}}
	text, err := json.Marshal(replace)
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(file, m.apply(w.of.text[m.File]), 0o600), os.WriteFile(overlay, text, 0o600))
}

// run runs the binary up to the first failure: all tests, or the named ones. It runs again what the machine seems to have
// broken.
func (w *workshop) run(ctx context.Context, deadline time.Duration, tests []string, flags ...string) (*outcome, error) {
	const tries = 3
	late := deadline/4 + 10*time.Second // for a binary that does not keep its own deadline
	for try := 1; ; try++ {
		o, err := w.within(ctx, deadline, late, tests, flags...)
		if err != nil || ctx.Err() != nil || try == tries || !o.isWeather() {
			return o, errors.Join(err, ctx.Err())
		}
	}
}

// within runs the binary once, and ends it late after its own deadline.
func (w *workshop) within(ctx context.Context, deadline, late time.Duration, tests []string, flags ...string) (*outcome, error) {
	tmp, err := folder(w.dir, "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // see close
	ctx, cancel := context.WithTimeout(ctx, deadline+late)
	defer cancel()
	args := append([]string{w.binary(), "-test.v=test2json", "-test.failfast", "-test.paniconexit0", "-test.timeout=" + deadline.String()}, flags...)
	if w.of.rapid {
		args = append(args, "-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=0s")
	}
	if len(tests) > 0 {
		args = append(args, "-test.run="+pattern(tests))
	}
	limited := fmt.Sprintf(`ulimit -v %d 2>/dev/null; exec "$@"`, memory)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", limited, "sh"}, args...)...) //nolint:gosec // running commands is the purpose
	cmd.Dir = w.of.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "PWD="+w.of.dir)
	group(cmd)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	read := make(chan *outcome)
	go func() { read <- follow(out, func() { time.AfterFunc(grace, cancel) }) }()
	start := time.Now()
	err = cmd.Run()
	_ = in.Close() // of a pipe in memory: it never fails
	o := <-read
	if cmd.ProcessState == nil {
		return nil, err
	}
	_ = cmd.Cancel() // programs that a test has left: usually none, which is an error
	o.seconds = time.Since(start).Seconds()
	o.passed = err == nil || errors.Is(err, exec.ErrWaitDelay)
	o.timedOut = o.timedOut || len(o.failed) == 0 && errors.Is(ctx.Err(), context.DeadlineExceeded)
	return o, nil
}

// follow reads the output of a binary, and calls failed after the first failed test.
func follow(out io.Reader, failed func()) *outcome {
	o := &outcome{}
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if o.take(strings.TrimSuffix(line, "\n")) && len(o.failed) == 1 {
			failed()
		}
		if err != nil {
			return o
		}
	}
}

// group puts a command and its children into a process group, which ends as a whole.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
}

// pattern matches exactly the named tests.
func pattern(tests []string) string {
	quoted := make([]string, len(tests))
	for i, name := range tests {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}
