package bustest

import (
	"os"
	"sync"
	"syscall"
)

// storeRoom is the space that the limits of all streams of some servers need. The shared memory of a container is
// mostly smaller.
const storeRoom = 4 << 30

// inMemory returns a folder of a file system in memory, or "" if this machine has none with enough room.
var inMemory = sync.OnceValue(func() string {
	const shared = "/dev/shm"
	var fs syscall.Statfs_t
	if err := syscall.Statfs(shared, &fs); err != nil || fs.Bavail*uint64(fs.Bsize) < storeRoom {
		return ""
	}
	probe, err := os.MkdirTemp(shared, "waggle-test-")
	if err != nil {
		return ""
	}
	if err := os.Remove(probe); err != nil {
		return ""
	}
	return shared
})
