package sandbox

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/waggle-dev/waggle/internal/sandbox/seccomp"
)

// confine restricts this process to its order and then becomes the program.
func confine(o *order) {
	// The restrictions are this thread's, and the program inherits them from the thread that executes it.
	runtime.LockOSThread()
	if err := noNewPrivileges(); err != nil {
		die("forbid new privileges", err)
	}
	if o.Features.Landlock > 0 {
		if err := landlock(o); err != nil {
			die("Landlock", err)
		}
	}
	if err := dropCapabilities(); err != nil {
		die("drop capabilities", err)
	}
	if o.Program == "" {
		probe(o)
	}
	env := os.Environ()
	f := seccomp.New(o.rules())
	if err := limit(o.Limits); err != nil {
		die("limits", err)
	}
	if o.Features.Seccomp {
		if err := f.Set(); err != nil {
			die("seccomp", err)
		}
	}
	die("execute "+o.Program, syscall.Exec(o.Program, o.Args, env)) //nolint:gosec // The operator's command.
}

// probe reports which layers this process could use.
func probe(o *order) {
	f := o.Features
	f.Why = map[Layer]string{}
	var err error
	if f.Landlock, err = landlockVersion(); err != nil {
		f.Why[Landlock] = err.Error()
	} else {
		try := *o
		try.Features.Landlock = f.Landlock
		if err := landlock(&try); err != nil {
			f.Landlock, f.Why[Landlock] = 0, err.Error()
		}
	}
	if err := seccomp.Check(); err != nil {
		f.Why[Seccomp] = err.Error()
	} else if err := seccomp.New(o.rules()).Set(); err != nil {
		f.Why[Seccomp] = err.Error()
	} else {
		f.Seccomp = true
	}
	f.Identity = unix.Geteuid() != 0
	report{Features: &f}.write()
	os.Exit(0)
}
