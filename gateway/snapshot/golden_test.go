package snapshot_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/snapshot"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

//go:generate go test -count=1 -run ^TestTheGoldenFilesAreCurrent$ -update .

var update = flag.Bool("update", false, "write the golden files")

// kindOf returns the kind of a log, which its events name.
func kindOf(t testing.TB, events []event.Event) id.Kind {
	t.Helper()
	parts := strings.SplitN(events[0].Subject, ".", 3)
	require.Len(t, parts, 3)
	return id.Kind(parts[1])
}

// wholeEvery is how often a golden file has a snapshot besides its SHA-256.
const wholeEvery = 20

// entity is the name of every log in a golden file.
var entity = id.EntityFromExternal("golden")

// recorded are the logs in testdata, by name.
func recorded(t testing.TB) map[string][]event.Event {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := map[string][]event.Event{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var events []event.Event
		for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
			var e event.Event
			require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
			events = append(events, e)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".jsonl")] = events
	}
	return out
}

func fold(t testing.TB, events []event.Event) *snapshot.Fold {
	t.Helper()
	f := snapshot.New(kindOf(t, events))
	for _, e := range events {
		f.Take(e)
	}
	return f
}

func canonical(t testing.TB, f *snapshot.Fold) string {
	t.Helper()
	raw, err := snapshot.Canonical(f.Snapshot(entity))
	require.NoError(t, err)
	return string(raw)
}

// TestTheGoldenFilesAreCurrent: the snapshot of each recorded log at every cut: its SHA-256, and
// now and then all of it. The console's folds are held to the same files.
func TestTheGoldenFilesAreCurrent(t *testing.T) {
	for name, events := range recorded(t) {
		t.Run(name, func(t *testing.T) {
			var lines strings.Builder
			f := snapshot.New(kindOf(t, events))
			for i, e := range events {
				f.Take(e)
				text := canonical(t, f)
				fmt.Fprintf(&lines, "%x", sha256.Sum256([]byte(text)))
				if i%wholeEvery == wholeEvery-1 || i == len(events)-1 {
					lines.WriteString(" " + text)
				}
				lines.WriteByte('\n')
			}
			file := filepath.Join("testdata", name+".golden")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(lines.String()), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), lines.String(), "run go generate ./snapshot in gateway")
		})
	}
}
