package workspace

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// TestTemporaryFilesOfAKilledProcessAreRemovedLater: a process that begins at once finds them too young to know if another
// one still writes them. A minute later it knows.
func TestTemporaryFilesOfAKilledProcessAreRemovedLater(t *testing.T) {
	dir := t.TempDir()
	left, writing := filepath.Join(dir, ".waggle-0123456789abcdef.tmp"), filepath.Join(dir, ".waggle-fedcba9876543210.tmp")
	require.NoError(t, os.WriteFile(left, []byte("x"), 0o600))
	just := time.Now().Add(-time.Second)
	require.NoError(t, os.Chtimes(left, just, just))
	var after time.Duration
	var again func()
	f, err := openLater(dir, func(d time.Duration, do func()) {
		require.Nil(t, again, "once for each folder")
		after, again = d, do
	})
	require.NoError(t, err)
	require.FileExists(t, left)
	root, err := f.Root(id.DefaultTenant)
	require.NoError(t, err)
	require.NoError(t, root.Close())
	require.Equal(t, abandoned, after)
	require.NoError(t, os.WriteFile(writing, []byte("x"), 0o600))
	soon := time.Now().Add(time.Second)
	require.NoError(t, os.Chtimes(writing, soon, soon))
	again()
	require.NoFileExists(t, left)
	require.FileExists(t, writing, "of a write that goes on")
	require.NoError(t, os.RemoveAll(dir))
	again() // nothing is left to be swept
}
