package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// startLimit bounds the shim's work before it becomes the program: some hundredths of a second, unless a file system hangs.
const startLimit = 30 * time.Second

// Detect returns the layers that this process can use. It tries them once.
var Detect = sync.OnceValue(detect)

// Prepare prepares the start of a program. The settings must be complete. The caller closes the launch.
func Prepare(c Command) (*Launch, error) {
	s := c.Settings
	if s.Mode == Off {
		return plain(c), nil
	}
	f := Detect().without(s.Without)
	gaps := f.Gaps(s)
	if s.Mode == Require && len(gaps) > 0 {
		return nil, &GapError{gaps}
	}
	l := &Launch{Features: f, Gaps: gaps}
	if err := l.prepare(c); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Launch) prepare(c Command) (err error) {
	program, err := find(c)
	if err != nil {
		return err
	}
	i := identityFor(c.Dir)
	if l.private, err = os.MkdirTemp("", "waggle-tool-"); err != nil {
		return err
	}
	if l.Features.Root && l.Features.Identity {
		if err := i.own(l.private); err != nil {
			return err
		}
	}
	s := c.Settings
	o := order{
		Features: l.Features, Ports: s.Reaches(), Network: s.Network, Limits: s.Limits, Program: program, Args: c.Args,
		Read: append(slices.Clone(s.Read), program), Write: append(slices.Clone(s.Write), l.private), Named: named(c, program),
	}
	l.Named = o.Named
	o.Dir = l.private
	if c.Dir != "" {
		if o.Dir, err = filepath.Abs(c.Dir); err != nil {
			return err
		}
		o.Write = append(o.Write, o.Dir)
	}
	if err := absolute(o.Read, o.Write); err != nil {
		return err
	}
	if err := replaceable(o.Write, s.Read, s.Write, []string{o.Dir}); err != nil {
		return err
	}
	l.Cmd = shim(&o, i)
	l.Cmd.Dir = o.Dir
	l.Cmd.Env = c.environment(l.private)
	l.status, l.theirs, err = os.Pipe()
	return err
}

// absolute makes paths absolute: the shim has another working folder.
func absolute(lists ...[]string) (err error) {
	for _, list := range lists {
		for i := range list {
			if list[i], err = filepath.Abs(list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// replaceable refuses a path below one that the program may write: the program could put a link in its place, and the next
// start would open what the link names.
func replaceable(write []string, lists ...[]string) error {
	for _, path := range slices.Concat(lists...) {
		abs, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		for _, w := range write {
			if rel, err := filepath.Rel(w, abs); err == nil && rel != "." && filepath.IsLocal(rel) {
				return fmt.Errorf("the program may write %s and replace %s in it: name %s alone", w, path, w)
			}
		}
	}
	return nil
}

// find returns the absolute path of the program.
func find(c Command) (string, error) {
	name := c.Args[0]
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = filepath.Join(c.Dir, name)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// environment returns the program's environment with its private folder.
func (c *Command) environment(private string) []string {
	env := slices.DeleteFunc(slices.Clone(c.Env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(c.Private, name)
	})
	for _, name := range c.Private {
		env = append(env, name+"="+private)
	}
	return env
}

// explain adds what an operator should know of an error of the shim.
func (l *Launch) explain(err error) error {
	if l.Features.Root && l.Features.Identity && strings.Contains(err.Error(), unix.EACCES.Error()) {
		return fmt.Errorf("sandbox: %w (waggle runs as root, and the program as the owner of its dir or as user %d, who has to reach it)", err, unprivileged)
	}
	return fmt.Errorf("sandbox: %w", err)
}

// Start starts the program and waits until it runs: an error says why the shim could not become it.
func (l *Launch) Start() error {
	if l.status == nil {
		return l.Cmd.Start()
	}
	_ = l.status.SetReadDeadline(time.Now().Add(startLimit))
	_, reported, err := start(l.Cmd, l.status, l.theirs)
	if l.Cmd.Process == nil {
		return err
	}
	if reported && err == nil {
		err = errors.New("the sandbox reported instead of starting the program")
	}
	if err != nil {
		_ = l.Cmd.Process.Kill()
		_ = l.Cmd.Wait()
		return l.explain(err)
	}
	return nil
}
