package dialecttest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// Part returns what stands in the file under a heading, which is given with its marks:
// "## Name". It ends at the next heading of the same level or a higher one.
func Part(t testing.TB, file, heading string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(raw), "\n"+heading+"\n")
	require.True(t, found, "%s has no part %s", file, heading)
	marks := strings.IndexByte(heading, ' ')
	next := regexp.MustCompile("(?m)^#{1," + string(rune('0'+marks)) + "} ").FindStringIndex(rest)
	if next == nil {
		return rest
	}
	return rest[:next[0]]
}

var block = regexp.MustCompile("(?s)```json\n(.*?)```")

// Shown returns the frames that a text shows: the lines of its blocks of JSON.
func Shown(text string) []string {
	var out []string
	for _, b := range block.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(b[1]) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// Said returns every frame that the golden transcripts of a folder show to the
// client.
func Said(t testing.TB, folder string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, f := range golden(t, folder) {
		out[string(f)] = true
	}
	return out
}

// golden returns the frames of the transcripts of a folder, without those of the client.
func golden(t testing.TB, folder string) [][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	require.NoError(t, err)
	var out [][]byte
	for _, p := range paths {
		a, err := txtar.ParseFile(p)
		require.NoError(t, err)
		out = append(append(out, Lines(Section(a, "frames"))...), Lines(Section(a, "replies"))...)
	}
	return out
}

// GoldenFrames returns the same, parsed, by type.
func GoldenFrames(t testing.TB, folder string, of func(frame []byte) string) map[string][]any {
	t.Helper()
	out := map[string][]any{}
	for _, f := range golden(t, folder) {
		out[of(f)] = append(out[of(f)], parse(t, f))
	}
	return out
}

func parse(t testing.TB, raw []byte) any {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal(raw, &v), "%s", raw)
	return v
}
