package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

var errNothing = errors.New("nothing found")

func init() {
	attacks["read_environ"] = func(t target) error { return readProc(t.PID, "environ") }
	attacks["read_maps"] = func(t target) error { return readProc(t.PID, "maps") }
	attacks["read_victim"] = func(t target) error { return readProc(t.Victim, "environ") }
	attacks["read_mem"] = readMem
	attacks["list_fds"] = func(t target) error { return listFiles(fmt.Sprintf("/proc/%d/fd", t.PID)) }
	attacks["open_cwd"] = func(t target) error { return listFiles(fmt.Sprintf("/proc/%d/root/", t.PID)) }
	attacks["find_secret"] = findSecret
	attacks["ptrace"] = ptrace
	attacks["process_vm_readv"] = vmRead
	attacks["process_vm_writev"] = vmWrite
	attacks["pidfd_getfd"] = stealFD
	attacks["signal_parent"] = func(t target) error { return syscall.Kill(t.PID, syscall.SIGWINCH) }
	attacks["signal_victim"] = func(t target) error { return syscall.Kill(t.Victim, syscall.SIGWINCH) }
	attacks["signal_by_pidfd"] = signalPidfd
	attacks["fork_bomb"] = forkBomb
	attacks["big_memory"] = bigMemory
	attacks["leave_process"] = leaveProcess
	attacks["core_limit"] = coreLimit
	attacks["read_cmdline"] = func(t target) error { return readProc(t.PID, "cmdline") }
}

func readProc(pid int, name string) error {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err == nil && len(b) == 0 {
		return errNothing
	}
	return err
}

func listFiles(folder string) error {
	entries, err := os.ReadDir(folder)
	if err == nil && len(entries) == 0 {
		return errNothing
	}
	return err
}

func readMem(t target) error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", t.PID))
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, len(t.Secret))
	if _, err := f.ReadAt(b, int64(t.Address)); err != nil {
		return err
	}
	if string(b) != t.Secret {
		return errNothing
	}
	return nil
}

// findSecret looks for the secret in the environment of every process.
func findSecret(t target) error {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte("VICTIM_SECRET=")) {
			return nil
		}
	}
	return errNothing
}

func ptrace(t target) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(t.Victim); err != nil {
		return err
	}
	_ = unix.PtraceInterrupt(t.Victim)
	var status unix.WaitStatus
	_, _ = unix.Wait4(t.Victim, &status, unix.WALL, nil)
	return unix.PtraceDetach(t.Victim)
}

func vectors(t target, b []byte) ([]unix.Iovec, []unix.RemoteIovec) {
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	return local, []unix.RemoteIovec{{Base: uintptr(t.Address), Len: len(b)}}
}

func vmRead(t target) error {
	b := make([]byte, len(t.Secret))
	local, remote := vectors(t, b)
	if _, err := unix.ProcessVMReadv(t.PID, local, remote, 0); err != nil {
		return err
	}
	if string(b) != t.Secret {
		return errNothing
	}
	return nil
}

// vmWrite writes what is there already.
func vmWrite(t target) error {
	local, remote := vectors(t, []byte(t.Secret))
	_, err := unix.ProcessVMWritev(t.PID, local, remote, 0)
	return err
}

func stealFD(t target) error {
	pidfd, err := unix.PidfdOpen(t.PID, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pidfd)
	fd, err := unix.PidfdGetfd(pidfd, 0, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func signalPidfd(t target) error {
	pidfd, err := unix.PidfdOpen(t.Victim, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pidfd)
	return unix.PidfdSendSignal(pidfd, unix.SIGWINCH, nil, 0)
}

// leaveProcess starts a process outside of the process group.
func leaveProcess(target) error {
	c := exec.Command("sleep", "600")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return c.Start()
}

// forkBomb succeeds if it can start N processes.
func forkBomb(t target) error {
	var all []*exec.Cmd
	defer func() {
		for _, c := range all {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}()
	for range t.N {
		c := exec.Command("sleep", "600")
		if err := c.Start(); err != nil {
			return fmt.Errorf("after %d: %w", len(all), err)
		}
		all = append(all, c)
	}
	return nil
}

// bigMemory succeeds if it can use N bytes.
func bigMemory(t target) error {
	b, err := unix.Mmap(-1, 0, t.N, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	return unix.Munmap(b)
}

// coreLimit succeeds if a crash could write memory into a file.
func coreLimit(target) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil {
		return err
	}
	if l.Max == 0 {
		return errors.New("no core files")
	}
	return nil
}

// errno returns the error of a raw system call.
func errno(_, _ uintptr, e syscall.Errno) error {
	if e != 0 {
		return e
	}
	return nil
}

func pointer[T any](v *T) uintptr { return uintptr(unsafe.Pointer(v)) }
