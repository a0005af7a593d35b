package dialecttest

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// open is how examples write a value that they leave open.
const open = "..."

// examples checks the examples of the protocol's description: one from the client
// must decode; of one to the client, some transcript must hold a frame that has all
// its members, with the same kinds of values.
func (c *checker) examples(t *testing.T) {
	frames := c.goldenFrames(t)
	entries, err := fs.ReadDir(c.Examples, ".")
	require.NoError(t, err)
	checked := 0
	for _, e := range entries {
		raw, err := fs.ReadFile(c.Examples, e.Name())
		require.NoError(t, err)
		kind := typeOf(raw)
		switch {
		case slices.Contains(c.Inbound, kind):
			for _, codec := range c.bound {
				cmds, err := codec.Decode(raw, inbound())
				require.NoError(t, err, "%s", e.Name())
				require.NotEmpty(t, cmds, "%s", e.Name())
			}
			require.NoError(t, c.schemas.check(kind, raw))
		case slices.Contains(c.Outbound, kind):
			require.True(t, slices.ContainsFunc(frames[kind], func(f any) bool { return covers(f, parse(t, raw)) }),
				"no transcript holds a frame of the shape of %s", e.Name())
		default:
			continue // Not a message: an envelope, or the body of an HTTP answer.
		}
		checked++
	}
	require.NotZero(t, checked)
}

// goldenFrames returns the frames of all transcripts by type.
func (c *checker) goldenFrames(t *testing.T) map[string][]any {
	paths, err := filepath.Glob(filepath.Join(c.Transcripts, "*.txtar"))
	require.NoError(t, err)
	out := map[string][]any{}
	for _, p := range paths {
		a, err := txtar.ParseFile(p)
		require.NoError(t, err)
		for _, f := range append(lines(section(a, "frames")), lines(section(a, "replies"))...) {
			out[typeOf(f)] = append(out[typeOf(f)], parse(t, f))
		}
	}
	return out
}

// covers reports whether got has everything that the example has: every member of
// its objects, values of the same kind, and equal strings and booleans where the
// example does not leave them open.
func covers(got, example any) bool {
	switch want := example.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		for k, v := range want {
			ok = ok && covers(have[k], v)
		}
		return ok
	case []any:
		have, ok := got.([]any)
		return ok && len(have) == len(want) && !slices.ContainsFunc(want, func(v any) bool {
			return !slices.ContainsFunc(have, func(h any) bool { return covers(h, v) })
		})
	case string:
		have, ok := got.(string)
		head, _, isOpen := strings.Cut(want, open)
		return ok && (have == want || isOpen && strings.HasPrefix(have, head))
	case float64:
		_, ok := got.(float64)
		return ok
	}
	return got == example
}

func parse(t testing.TB, raw []byte) any {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal(raw, &v), "%s", raw)
	return v
}
