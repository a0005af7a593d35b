package bustest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Store returns a folder for the files of a server. It ends with the test. It lies in memory where the machine
// allows it: a server makes some hundred files, and on a disk that costs more than the rest of most tests.
func Store(t testing.TB) string {
	t.Helper()
	root := inMemory()
	if root == "" {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(root, "waggle-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
