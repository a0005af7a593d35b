package agui_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect/agui"
)

var update = flag.Bool("update", false, "rewrite the golden transcripts")

// golden are the variants that the transcripts show.
var golden = map[string]agui.Variant{"frames 1.0": agui.V1, "frames agui-0": agui.V0}

// TestTranscripts: logs of real flows give the frames that are written down: the clients of other people took them without a
// warning (e2e/agui_clients_test.go). -update rewrites them.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/transcripts/*.txtar")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 9)
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		require.NoError(t, err)
		events := read(t, a.Files[0].Data)
		require.NotEmpty(t, events, path)
		files := a.Files[:1:1]
		for _, section := range []string{"frames 1.0", "frames agui-0"} {
			var lines strings.Builder
			for i, frames := range play(golden[section], events) {
				for n, f := range frames {
					require.NotContains(t, string(f.Data), "\n", "%s, event %d, frame %d", path, i+1, n)
					lines.WriteString(string(f.Data) + "\n")
				}
			}
			files = append(files, txtar.File{Name: section, Data: []byte(lines.String())})
			if *update {
				continue
			}
			i := len(files) - 1
			require.Greater(t, len(a.Files), i, path)
			require.Equal(t, string(a.Files[i].Data), lines.String(), "%s, %s; run with -update if this is meant", path, section)
		}
		if *update {
			a.Files = files
			require.NoError(t, os.WriteFile(path, txtar.Format(a), 0o600))
		}
	}
}
