package sandbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolating are the namespaces of a program.
const isolating = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// isolate adds the namespaces to the attributes of a process. The process has the capability to mount in them until it drops
// it. A program with a network stays in the network of this process.
func isolate(attr *syscall.SysProcAttr, network bool) {
	attr.Cloneflags = isolating
	if !network {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
}

// mapUser maps the one user and group of the namespace to themselves. An unprivileged parent that forbids others to look
// into it cannot do that for its child.
func mapUser(uid, gid int) error {
	for _, m := range []struct{ file, text string }{
		{"/proc/self/setgroups", "deny"},
		{"/proc/self/uid_map", fmt.Sprintf("%d %d 1", uid, uid)},
		{"/proc/self/gid_map", fmt.Sprintf("%d %d 1", gid, gid)},
	} {
		if err := os.WriteFile(m.file, []byte(m.text), 0); err != nil {
			return err
		}
	}
	return nil
}

// sharedMemory bounds /dev/shm of a program.
const sharedMemory = "size=256m,mode=1777"

// closeMounts makes every mount of the namespace read-only but the given paths. Landlock alone would let the program change
// modes, owners and attributes of all files of its user.
func closeMounts(write []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	for _, path := range write {
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount %s: %w", path, err)
		}
	}
	closed := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &closed); err != nil {
		return fmt.Errorf("mount / read-only: %w", err)
	}
	open := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	for _, path := range write {
		// A path that was read-only for this process, too, stays so.
		if err := unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, &open); err != nil && !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("mount %s for writing: %w", path, err)
		}
	}
	return nil
}

// mountOwn mounts a /proc and a /dev/shm of the namespaces' own. Containers may forbid the first.
func mountOwn() error {
	const plain = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", plain, sharedMemory); err != nil {
		return fmt.Errorf("mount /dev/shm: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", plain, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}
