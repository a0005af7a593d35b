package sandbox

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// begin makes the namespaces usable, starts the rest of the order as a child and then is the first process of the
// namespaces: it collects the processes that end, and all end with it.
func begin(o *order) {
	runtime.LockOSThread()
	if o.Map {
		if err := mapUser(o.UID, o.GID); err != nil {
			die("map the user", err)
		}
	}
	o.Features.Closed = closeMounts(o.Write) == nil
	o.Features.OwnProc = mountOwn() == nil
	// The working folder is still the one of the mount below.
	if err := os.Chdir(o.Dir); err != nil {
		die("working folder", err)
	}
	// The parent signals the whole group. A handler, unlike an ignored signal, does not pass on to the child.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE)

	rest := *o
	rest.Init = false
	child, err := syscall.ForkExec(self, rest.args(), &syscall.ProcAttr{ //nolint:gosec // This binary, with an order of its own.
		Env: os.Environ(), Files: []uintptr{0, 1, 2, statusFD},
	})
	if err != nil {
		die("start the shim", err)
	}
	_ = unix.Close(statusFD)
	release()
	os.Exit(collect(child))
}

// release gives up what the first process does not need. An error costs no protection: the program has none of these.
func release() {
	if null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		for fd := range 3 {
			_ = unix.Dup3(null, fd, 0)
		}
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	_ = dropCapabilities()
}

// collect waits for all processes until the child has ended, and returns its exit status in the form of shells.
func collect(child int) int {
	for {
		var status syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &status, 0, nil); {
		case err == syscall.EINTR:
		case err != nil:
			return 1
		case pid != child:
		case status.Signaled():
			return 128 + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}
