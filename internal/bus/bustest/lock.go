package bustest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// lock waits for the exclusive lock of a file.
func lock(name string) (unlock func(), err error) {
	f, err := flock(name, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// held keeps the locks of this process, so that no collector closes their files.
var held []*os.File

// hold takes a share of the lock of a file until this process ends.
func hold(name string) error {
	f, err := flock(name, syscall.LOCK_SH)
	held = append(held, f)
	return err
}

func flock(name string, how int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Clean(name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return f, err
		}
	}
}
