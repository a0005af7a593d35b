package site

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheClockThatIsPatched: this toolchain's time.Now is what the patch expects, and
// another one is refused.
func TestTheClockThatIsPatched(t *testing.T) {
	dir := t.TempDir()
	list, err := overlayIn(dir)
	require.NoError(t, err)
	require.FileExists(t, list)
	patched, err := os.ReadFile(filepath.Join(dir, "time.go"))
	require.NoError(t, err)
	require.Contains(t, string(patched), nowHead+nowReads+nowAdds)
	for _, other := range []string{"", string(patched) + nowHead + nowReads} {
		_, err = shiftNow(other)
		require.ErrorContains(t, err, "begins in another way")
	}
}
