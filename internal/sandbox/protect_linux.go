package sandbox

import "golang.org/x/sys/unix"

// Protect hides the memory and the environment of this process from other processes of its user: they cannot read them in
// /proc, attach a debugger, or make it write a core file.
func Protect() error {
	if err := lower(unix.RLIMIT_CORE, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}
