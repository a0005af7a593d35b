package plain_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/internal/plain"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// untyped returns the frames and the schema of the protocol as they would be without a member type: one with the name of the type
// says which it is.
func untyped(t testing.TB, encode func(event.Event) [][]byte) (func(event.Event) [][]byte, string) {
	t.Helper()
	var bundle map[string]any
	require.NoError(t, json.Unmarshal([]byte(plain.Schema), &bundle))
	defs, _ := bundle["$defs"].(map[string]any)
	for name, d := range defs {
		def, _ := d.(map[string]any)
		members, _ := def["properties"].(map[string]any)
		if members["type"] == nil {
			continue
		}
		delete(members, "type")
		members[name] = map[string]any{"const": true}
		required, _ := def["required"].([]any)
		required[slices.Index(required, any("type"))] = name
	}
	schema, err := json.Marshal(bundle)
	require.NoError(t, err)
	return func(e event.Event) [][]byte {
		frames := encode(e)
		for i, f := range frames {
			var m map[string]any
			require.NoError(t, json.Unmarshal(f, &m))
			name, _ := m["type"].(string)
			delete(m, "type")
			m[name] = true
			frames[i], err = json.Marshal(m)
			require.NoError(t, err)
		}
		return frames
	}, string(schema)
}

// TestWatchingAnyRun: the protocol leaves nothing out that matters, and the suite finds frames that have no type.
func TestWatchingAnyRun(t *testing.T) {
	codec, err := plain.Dialect().Bind(url.Values{})
	require.NoError(t, err)
	w := dialecttest.Watch{
		Encode: []func(event.Event) [][]byte{codec.Encode}, Outbound: plain.Outbound, Schema: plain.Schema,
		Member: func(f map[string]any) string {
			member, _ := f["member"].(string)
			return member
		},
		Strip: func(f map[string]any) {
			delete(f, "member")
			delete(f, "seq")
		},
	}
	t.Run("with a type", func(t *testing.T) { dialecttest.ExerciseWatching(t, w) })
	t.Run("without a type", func(t *testing.T) {
		encode, schema := untyped(t, codec.Encode)
		w.Encode, w.Schema = []func(event.Event) [][]byte{encode}, schema
		w.Name = func(frame any) string {
			m, _ := frame.(map[string]any)
			for _, name := range plain.Outbound {
				if m[name] == true {
					return name
				}
			}
			return ""
		}
		dialecttest.ExerciseWatching(t, w)
	})
}
