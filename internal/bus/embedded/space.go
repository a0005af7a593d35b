package embedded

import (
	"fmt"
	"syscall"
)

// free returns the space that this user may still fill on the folder's disk.
func free(dir string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, fmt.Errorf("measure the disk of %s: %w", dir, err)
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil //nolint:gosec,unconvert // other types on other systems; never negative
}
