package sandbox

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// unprivileged is the user of programs of a root process whose folder belongs to root.
const unprivileged = 65534

// identity is the user and group of a program.
type identity struct{ uid, gid int }

// identityFor returns the user of a program. That of a root process runs as the owner of its working folder, if that is not
// root.
func identityFor(dir string) identity {
	if unix.Geteuid() != 0 {
		return identity{unix.Geteuid(), unix.Getegid()}
	}
	var stat unix.Stat_t
	if dir != "" && unix.Stat(dir, &stat) == nil && stat.Uid != 0 && stat.Gid != 0 {
		return identity{int(stat.Uid), int(stat.Gid)}
	}
	return identity{unprivileged, unprivileged}
}

// become makes a process of root start as the identity.
func (i identity) become(attr *syscall.SysProcAttr) {
	attr.Credential = &syscall.Credential{Uid: uint32(i.uid), Gid: uint32(i.gid)} //nolint:gosec // The kernel's own numbers.
	if attr.Cloneflags&unix.CLONE_NEWUSER == 0 {
		return
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: i.uid, HostID: i.uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: i.gid, HostID: i.gid, Size: 1}}
	attr.GidMappingsEnableSetgroups = true
}

// own gives a new folder to the identity.
func (i identity) own(dir string) error {
	if i.uid == unix.Geteuid() {
		return nil
	}
	if err := os.Chown(dir, i.uid, i.gid); err != nil {
		return fmt.Errorf("give the private folder to the program: %w", err)
	}
	return nil
}
