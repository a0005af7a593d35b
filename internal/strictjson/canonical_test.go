package strictjson_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		` { "b" : [ 1 , 2.0 ] , "a" : "\u00e9\u003c\/" } `: `{"a":"é</","b":[1,2]}`,
		`{"n":9007199254740993,"m":18446744073709551615}`:  `{"m":18446744073709551615,"n":9007199254740993}`,
		`1e2`:      `100`,
		`"\u001F"`: `"\u001f"`,
	} {
		got, err := strictjson.Canonical([]byte(in))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	for _, bad := range []string{``, `{"a":1,"a":2}`, `{} {}`, "\"\xff\"", `[1,]`} {
		_, err := strictjson.Canonical([]byte(bad))
		var f *fault.Fault
		require.ErrorAs(t, err, &f, bad)
	}
}

// TestCanonicalHasOneForm: all writings of a document have the same form, and the form is its own form.
func TestCanonicalHasOneForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := map[string]any{}
		for k, v := range rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "members") {
			doc[k] = v
		}
		doc["n"] = rapid.Int64().Draw(t, "n")
		tight, err := json.Marshal(doc)
		require.NoError(t, err)
		loose, err := json.MarshalIndent(doc, " ", "\t")
		require.NoError(t, err)
		want, err := strictjson.Canonical(tight)
		require.NoError(t, err)
		for _, other := range [][]byte{loose, want} {
			got, err := strictjson.Canonical(other)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		}
	})
}
