package workspace

import (
	"crypto/rand"
	"encoding/hex"
	"io/fs"
	"os"
	"strings"
	"time"
)

const (
	// Lists and searches hide temporary files.
	tempPrefix, tempSuffix = ".waggle-", ".tmp"
	// abandoned is the age of temporary files that no process still writes: a write takes a moment.
	abandoned = time.Minute
	// maxSwept bounds the files that a process looks at in search of abandoned ones.
	maxSwept = 100_000
)

func tempName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // Never fails.
	return tempPrefix + hex.EncodeToString(b[:]) + tempSuffix
}

func isTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}

// sweep removes the temporary files that processes left when they were killed before the time.
func sweep(root *os.Root, before time.Time) {
	seen := 0
	_ = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > maxSwept {
			return fs.SkipAll
		}
		if err != nil || !d.Type().IsRegular() || !isTemp(d.Name()) {
			return nil //nolint:nilerr // what cannot be read is left alone
		}
		if info, err := d.Info(); err == nil && info.ModTime().Before(before) {
			_ = root.Remove(path)
		}
		return nil
	})
}
