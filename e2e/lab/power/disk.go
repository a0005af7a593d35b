package power

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	// diskSize is of the image, which takes only the room of what is in it.
	diskSize = 1 << 30
	// options keep the file system from writing on its own, within the minutes of a test, data
	// that no program has synced.
	options = "loop,noatime,commit=600"
)

// Disk is a file system of its own in an image file. The image at one moment is the content
// of a disk whose power fails then.
type Disk struct {
	t     testing.TB
	image string
	// Dir is where it is mounted.
	Dir string
}

// NewDisk makes an empty disk. It ends with the test.
func NewDisk(t testing.TB) *Disk {
	t.Helper()
	folder := t.TempDir()
	d := &Disk{t: t, image: filepath.Join(folder, "image"), Dir: filepath.Join(folder, "disk")}
	require.NoError(t, os.Mkdir(d.Dir, 0o700))
	f, err := os.Create(d.image)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(diskSize))
	require.NoError(t, f.Close())
	d.run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", d.image)
	d.mount()
	t.Cleanup(d.unmount)
	return d
}

// Fail cuts the power: the disk loses all data that had not been written through. Its
// writers must be dead.
func (d *Disk) Fail() {
	d.t.Helper()
	held := d.image + ".held"
	d.run("cp", "--sparse=always", d.image, held)
	d.unmount() // writes the rest to an image that is not used again
	require.NoError(d.t, os.Rename(held, d.image))
	d.mount() // replays the journal
}

func (d *Disk) mount() {
	d.t.Helper()
	d.run("mount", "-o", options, d.image, d.Dir)
}

func (d *Disk) unmount() {
	d.t.Helper()
	d.run("umount", d.Dir)
}

func (d *Disk) run(name string, args ...string) {
	d.t.Helper()
	out, err := exec.CommandContext(context.Background(), name, args...).CombinedOutput() //nolint:gosec // the test's own
	require.NoError(d.t, err, "%s %v: %s", name, args, out)
}
