package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

func init() {
	attacks["read_file"] = func(t target) error { return read(t.File) }
	attacks["write_file"] = func(t target) error { return appendTo(t.File) }
	attacks["truncate_file"] = func(t target) error { return os.Truncate(t.File, 5) }
	attacks["create_file"] = createFile
	attacks["list_folder"] = func(t target) error { return listFiles(t.Folder) }
	attacks["read_by_symlink"] = bySymlink
	attacks["read_by_hardlink"] = byHardlink
	attacks["read_by_rename"] = byRename
	attacks["read_by_handle"] = byHandle
	attacks["read_by_magic_link"] = byMagicLink
	attacks["change_mode"] = changeMode
	attacks["change_mode_2"] = changeMode2
	attacks["change_attribute"] = changeAttribute
	attacks["execute_file"] = execute
	attacks["fill_disk"] = fillDisk
	attacks["make_device"] = makeDevice
}

func read(file string) error {
	b, err := os.ReadFile(file)
	if err == nil && len(b) == 0 {
		return errNothing
	}
	return err
}

func appendTo(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("x")
	return err
}

// changeMode succeeds if it takes all rights on the file away; it gives them back.
func changeMode(t target) error {
	if err := os.Chmod(t.File, 0); err != nil {
		return err
	}
	return restore(t)
}

func changeMode2(t target) error {
	fd, err := unix.Open(t.File, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	empty := [1]byte{}
	_, _, e := unix.Syscall6(unix.SYS_FCHMODAT2, uintptr(fd), pointer(&empty), 0, unix.AT_EMPTY_PATH, 0, 0)
	if e != 0 {
		return e
	}
	return restore(t)
}

func restore(t target) error {
	info, err := os.Stat(t.File)
	if err == nil && info.Mode().Perm() != 0 {
		return errNothing
	}
	return errors.Join(err, os.Chmod(t.File, 0o777))
}

func changeAttribute(t target) error {
	if err := unix.Setxattr(t.File, "user.hostile", []byte("x"), 0); err != nil {
		return err
	}
	if _, err := unix.Getxattr(t.File, "user.hostile", make([]byte, 8)); err != nil {
		return err
	}
	return unix.Removexattr(t.File, "user.hostile")
}

func createFile(t target) error {
	name := filepath.Join(t.Folder, fmt.Sprintf("made-by-%d", os.Getpid()))
	if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
		return err
	}
	return os.Remove(name)
}

func own(name string) string { return filepath.Join(os.TempDir(), name) }

func bySymlink(t target) error {
	link := own("link")
	defer os.Remove(link)
	if err := os.Symlink(t.File, link); err != nil {
		return err
	}
	return read(link)
}

func byHardlink(t target) error {
	link := own("hard")
	defer os.Remove(link)
	if err := os.Link(t.File, link); err != nil {
		return err
	}
	return read(link)
}

// byRename moves the file into the own folder and back.
func byRename(t target) error {
	mine := own("moved")
	if err := os.Rename(t.File, mine); err != nil {
		return err
	}
	err := read(mine)
	if back := os.Rename(mine, t.File); back != nil {
		return back
	}
	return err
}

func byHandle(t target) error {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, t.File, 0)
	if err != nil {
		return err
	}
	dir, err := unix.Open("/", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := unix.OpenByHandleAt(dir, handle, unix.O_RDONLY)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// byMagicLink goes through the parent's root folder.
func byMagicLink(t target) error {
	return read(fmt.Sprintf("/proc/%d/root%s", t.PID, t.File))
}

// execute runs a program outside of the allowed folders.
func execute(t target) error {
	return exec.Command(t.File).Run()
}

func fillDisk(t target) error {
	name := own("large")
	defer os.Remove(name)
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for n := 0; n < t.N; n += len(block) {
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	return nil
}

func makeDevice(target) error {
	name := own("device")
	defer os.Remove(name)
	return syscall.Mknod(name, syscall.S_IFBLK|0o600, int(unix.Mkdev(8, 0)))
}
