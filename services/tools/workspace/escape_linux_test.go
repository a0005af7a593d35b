package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// While the test uses every tool on a folder, the folder and a link that leads out change places, as fast as possible. The
// tools must neither read nor write outside.
func TestSwappingAFolderForALinkDoesNotLeadOut(t *testing.T) {
	tr := newTrap(t)
	swap, link := filepath.Join(tr.dir, "swap"), filepath.Join(tr.dir, "link")
	put(t, filepath.Join(swap, "secret.txt"), "harmless")
	require.NoError(t, os.Symlink("../outside", link))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var swaps int
	var failed error
	wg.Go(func() {
		for ; failed == nil; swaps++ {
			select {
			case <-stop:
				return
			default:
				failed = unix.Renameat2(unix.AT_FDCWD, swap, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	})
	var all strings.Builder
	for range 60 {
		got := tr.attack(t, "swap") + tr.attack(t, "swap/secret.txt") + tr.attack(t, "swap/sub/secret.txt")
		require.NotContains(t, got, canary)
		all.WriteString(got)
	}
	close(stop)
	wg.Wait()
	require.NoError(t, failed)
	t.Logf("%d swaps during %d answers", swaps, 60*3*7)
	require.True(t, strings.Contains(all.String(), "leads out of the workspace"), "the link was never met")
	require.True(t, strings.Contains(all.String(), "secret.txt with 6 bytes"), "the folder was never met")
	require.Equal(t, tr.before, tr.snapshot(t))
}
