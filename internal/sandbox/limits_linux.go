package sandbox

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limit sets the resource limits of this process.
func limit(l Limits) error {
	for _, r := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"core", unix.RLIMIT_CORE, 0},
		{"processes", unix.RLIMIT_NPROC, uint64(l.Processes)},   //nolint:gosec // Complete has refused negative limits.
		{"open files", unix.RLIMIT_NOFILE, uint64(l.OpenFiles)}, //nolint:gosec // as above
		{"memory", unix.RLIMIT_DATA, uint64(l.Memory)},          //nolint:gosec // as above
		{"file size", unix.RLIMIT_FSIZE, uint64(l.FileSize)},    //nolint:gosec // as above
		{"cpu", unix.RLIMIT_CPU, uint64(l.CPU / time.Second)},   //nolint:gosec // as above
		{"message queues", unix.RLIMIT_MSGQUEUE, 0},
		{"locked memory", unix.RLIMIT_MEMLOCK, 64 << 10},
	} {
		if err := lower(r.resource, r.value); err != nil {
			return fmt.Errorf("limit of %s: %w", r.name, err)
		}
	}
	return nil
}

// lower sets a limit, or keeps one that is lower already.
func lower(resource int, value uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	value = min(value, now.Max)
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value})
}
