package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// shim returns the command that runs the order with the features, as the identity.
func shim(o *order, i identity) *exec.Cmd {
	cmd := &exec.Cmd{Path: self, SysProcAttr: &syscall.SysProcAttr{}}
	if o.Features.Namespaces {
		isolate(cmd.SysProcAttr, o.Network)
		o.Init, o.UID, o.GID = true, i.uid, i.gid
		o.Map = !o.Features.Root
	}
	if o.Features.Identity && o.Features.Root {
		i.become(cmd.SysProcAttr)
	}
	cmd.Args = o.args()
	return cmd
}

// start starts a shim and returns its report, if it made one.
func start(cmd *exec.Cmd, status, theirs *os.File) (report, bool, error) {
	cmd.ExtraFiles = []*os.File{theirs} // becomes statusFD
	err := cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return report{}, false, err
	}
	r, reported, err := readReport(status)
	if err == nil && r.Error != "" {
		err = errors.New(r.Error)
	}
	return r, reported, err
}

// detect tries the layers: in a process of its own, because they cannot be taken off again.
func detect() Features {
	root := unix.Geteuid() == 0
	var f Features
	var refused error
	for _, try := range []Features{{Namespaces: true, Identity: true}, {Identity: true}, {}} {
		try.System, try.Root = "linux", root
		var err error
		if f, err = attempt(try); err == nil {
			break
		}
		if refused == nil {
			refused = err
		}
		f = try
	}
	if f.Why == nil {
		f.Why = map[Layer]string{}
	}
	if !f.Namespaces && refused != nil {
		f.Why[Namespaces] = refused.Error()
	}
	if f.Root && !f.Identity && refused != nil {
		f.Why[Identity] = refused.Error()
	}
	return f
}

// attempt starts a shim with these features that reports the others.
func attempt(f Features) (Features, error) {
	status, theirs, err := os.Pipe()
	if err != nil {
		return f, err
	}
	defer func() { _ = status.Close() }()
	o := order{Features: f, Dir: "/"}
	cmd := shim(&o, identityFor(""))
	r, reported, err := start(cmd, status, theirs)
	if cmd.Process != nil {
		err = errors.Join(err, cmd.Wait())
	}
	if err != nil {
		return f, err
	}
	if !reported || r.Features == nil {
		return f, fmt.Errorf("the sandbox did not report")
	}
	return *r.Features, nil
}
