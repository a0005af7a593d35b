package console_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/cmd/waggle/console"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The history returns messages unchanged, the newest at least, from a bounded file.
func TestTheHistoryKeepsWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		file := filepath.Join(dir, rapid.StringMatching(`[a-z]{16}`).Draw(t, "file"))
		written := rapid.SliceOfN(rapid.StringMatching(`[a-zäß\n\t" \\]{1,12}x`), 0, 20).Draw(t, "messages")
		again := rapid.IntRange(1, 100).Draw(t, "times")
		var want []string
		for range again {
			h, err := console.OpenHistory(file)
			require.NoError(t, err)
			for _, m := range written {
				h.Add(m)
				if len(want) == 0 || want[len(want)-1] != m {
					want = append(want, m)
				}
			}
			require.LessOrEqual(t, len(h.Messages()), console.Keep)
		}
		h, err := console.OpenHistory(file)
		require.NoError(t, err)
		want = want[max(len(want)-console.Keep, 0):]
		require.Equal(t, want, append([]string(nil), h.Messages()...))
		raw, err := os.ReadFile(file)
		if err == nil {
			require.LessOrEqual(t, strings.Count(string(raw), "\n"), 2*console.Keep+20)
		}
	})
}

func TestAHistoryThatCannotBeKept(t *testing.T) {
	h, err := console.OpenHistory(t.TempDir())
	require.Error(t, err)
	h.Add("still there")
	require.Equal(t, []string{"still there"}, h.Messages())
	file := filepath.Join(t.TempDir(), "h")
	require.NoError(t, os.WriteFile(file, []byte("\"one\"\nbroken\n\"tw"), 0o600))
	h, err = console.OpenHistory(file)
	require.NoError(t, err)
	require.Equal(t, []string{"one"}, h.Messages())
}

func TestTheHistoryIsInTheFolderForState(t *testing.T) {
	t.Setenv("HOME", "/home/ada")
	t.Setenv("XDG_STATE_HOME", "")
	require.Equal(t, "/home/ada/.local/state/waggle/h", console.HistoryFile("h"))
	t.Setenv("XDG_STATE_HOME", "/state")
	require.Equal(t, "/state/waggle/h", console.HistoryFile("h"))
}
