package sandbox

import "golang.org/x/sys/unix"

// noNewPrivileges makes set-uid programs and file capabilities ineffective for this thread and what it executes.
func noNewPrivileges() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }

// dropCapabilities takes all capabilities from this thread. With noNewPrivileges an execution returns none, not even to root.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capset(&head, &data[0])
}
