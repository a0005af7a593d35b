package main

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func init() {
	attacks["mount"] = mount
	attacks["unshare_user"] = func(target) error { return child(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}) }
	attacks["unshare_mounts"] = func(target) error { return child(&syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}) }
	attacks["enter_namespace"] = enter
	attacks["become_root"] = func(target) error {
		return child(&syscall.SysProcAttr{Credential: &syscall.Credential{NoSetGroups: true}})
	}
	attacks["become_other"] = func(target) error {
		return child(&syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345, NoSetGroups: true}})
	}
	attacks["change_root"] = func(target) error { return child(&syscall.SysProcAttr{Chroot: "/usr"}) }
	attacks["io_uring"] = func(target) error {
		var params [120]byte
		fd, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, pointer(&params), 0)
		return closing(fd, e)
	}
	attacks["bpf"] = func(target) error {
		attr := [72]byte{0: 1, 4: 4, 8: 4, 12: 1} // an array with one element
		fd, _, e := unix.Syscall(unix.SYS_BPF, 0, pointer(&attr), 72)
		return closing(fd, e)
	}
	attacks["userfaultfd"] = func(target) error {
		fd, _, e := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1, 0, 0)
		return closing(fd, e)
	}
	attacks["perf_event"] = func(target) error {
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Bits: unix.PerfBitExcludeKernel}
		fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	}
	attacks["keyring"] = func(target) error {
		_, err := unix.AddKey("user", "hostile", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	}
	attacks["shared_memory"] = func(target) error {
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
		if err == nil {
			_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		}
		return err
	}
	attacks["personality"] = func(target) error { return errno(unix.Syscall(unix.SYS_PERSONALITY, 0x0040000, 0, 0)) }
	attacks["compare_processes"] = func(t target) error {
		return errno(unix.Syscall6(unix.SYS_KCMP, uintptr(t.Victim), uintptr(t.Victim), 1, 0, 0, 0))
	}
	attacks["kernel_log"] = func(target) error {
		b := make([]byte, 128)
		_, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, b)
		return err
	}
	attacks["set_hostname"] = func(target) error {
		name, err := os.Hostname()
		if err != nil {
			return err
		}
		return unix.Sethostname([]byte(name))
	}
	attacks["lower_nice"] = func(target) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -5) }
	attacks["raise_limit"] = func(target) error {
		return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20})
	}
	attacks["new_namespace_by_clone3"] = func(target) error {
		args := [11]uint64{0: unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		pid, _, e := syscall.RawSyscall(unix.SYS_CLONE3, pointer(&args), 88, 0)
		if e == 0 && pid == 0 {
			_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		return errno(0, 0, e)
	}
}

func closing(fd uintptr, e syscall.Errno) error {
	if e == 0 {
		_ = unix.Close(int(fd))
	}
	return errno(fd, 0, e)
}

// child runs a program with the attributes.
func child(attr *syscall.SysProcAttr) error {
	c := exec.Command("/bin/true")
	c.SysProcAttr = attr
	if attr.Chroot != "" {
		c.Path, c.Dir = "/bin/true", "/"
	}
	return c.Run()
}

func mount(target) error {
	dir, err := os.MkdirTemp("", "mount")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		return err
	}
	return unix.Unmount(dir, 0)
}

// enter joins the parent's network again.
func enter(t target) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pidfd, err := unix.PidfdOpen(t.PID, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pidfd)
	return unix.Setns(pidfd, unix.CLONE_NEWNET)
}
