package dialecttest

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// open is how examples write a value that they leave open.
const open = "..."

// examples checks the examples of the protocol's description: one from the client
// must decode; of one to the client, some transcript must hold a frame that has all
// its members, with the same kinds of values.
func (c *checker) examples(t *testing.T) {
	frames := GoldenFrames(t, c.Transcripts, c.typeOf)
	entries, err := fs.ReadDir(c.Examples, ".")
	require.NoError(t, err)
	checked := 0
	for _, e := range entries {
		raw, err := fs.ReadFile(c.Examples, e.Name())
		require.NoError(t, err)
		kind := c.typeOf(raw)
		switch {
		case slices.Contains(c.Inbound, kind):
			for _, codec := range c.bound {
				asked, intents, err := c.ask(t, codec, raw, c.inbound())
				require.NoError(t, err, "%s", e.Name())
				require.True(t, len(intents) > 0 || asked != "", "%s", e.Name())
			}
			require.NoError(t, c.schemas.check(kind, raw))
		case c.Unsaid != nil:
			c.shape(t, e.Name(), kind, parse(t, raw), frames[kind])
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

// shape checks an example that leaves things out or has what this version never sends:
// all its other members are in some frame of the transcripts, with the same kind of value.
func (c *checker) shape(t *testing.T, name, kind string, example any, frames []any) {
	have := map[string]bool{}
	for _, f := range frames {
		paths(f, "", func(p string) { have[p] = true })
	}
	paths(example, "", func(p string) {
		bare, _, _ := strings.Cut(p, " ")
		if !slices.Contains(c.Unsaid, kind+" "+bare) && bare != "timestamp" {
			require.True(t, have[p], "%s: no transcript holds a %s with %s", name, kind, p)
		}
	})
}

// paths calls f with the path of every member and its kind. All members of a list have
// one path.
func paths(v any, path string, f func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			p := strings.TrimPrefix(path+"."+name, ".")
			f(p + fmt.Sprintf(" %T", inner))
			paths(inner, p, f)
		}
	case []any:
		for _, inner := range v {
			paths(inner, path, f)
		}
	}
}

// Exercise runs the whole suite against the dialect.
func Exercise(t *testing.T, s Suite) {
	t.Helper()
	c := load(t, s)
	t.Run("codecs", c.codecs)
	t.Run("transcripts", c.transcripts)
	t.Run("examples", c.examples)
	t.Run("hostile", c.hostile)
	t.Run("faults", c.faults)
	t.Run("events", c.events)
	t.Run("damage", c.damage)
	t.Run("any event", c.anyEvent)
	t.Run("cuts", c.cuts)
	t.Run("pure", c.pure)
}
