package e2e_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// The binary of "make build" is small: package commandline says what keeps it so.
func TestTheBinaryIsSmall(t *testing.T) {
	t.Parallel()
	const limit = 50_000_000 // bytes; 49 MB when this was written, 1.3 of them the documentation
	i, err := os.Stat(process.Binary(t))
	require.NoError(t, err)
	require.Less(t, i.Size(), int64(limit), "a library makes the linker keep every method: see the comment of cmd/waggle/commandline")
}
