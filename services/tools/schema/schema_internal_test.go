package schema

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
)

func TestSchemasThatAreRefused(t *testing.T) {
	for _, raw := range []string{
		``, `{`, `7`, `{"type":"object"} {}`, `{"type":"wrong"}`, `{"$ref":"http://example.com/x"}`,
		`{"$ref":"https://example.com/x"}`, `{"$ref":"file:///etc/passwd"}`, `{"$ref":"other.json"}`,
		`{"$schema":"http://example.com/meta","type":"object"}`, `{"$ref":"#/missing"}`,
		`{"properties":{"a":{"pattern":"("}}}`, `{"minimum":1e-99999}`, `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		`{"description":"` + strings.Repeat("x", maxSchema) + `"}`,
	} {
		_, err := Compile(json.RawMessage(raw))
		require.Error(t, err, bound.Shorten(raw, 100))
	}
}

func TestReferencesAreNotFetched(t *testing.T) {
	file := filepath.Join(t.TempDir(), "schema.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"type":"string"}`), 0o600))
	var hits atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		_, _ = w.Write([]byte(`{"type":"string"}`))
	}))
	defer srv.Close()
	for _, ref := range []string{"file://" + file, srv.URL + "/schema.json"} {
		_, err := Compile(json.RawMessage(`{"properties":{"a":{"$ref":"` + ref + `"}}}`))
		require.ErrorContains(t, err, "is not fetched")
	}
	require.Zero(t, hits.Load())
}

func TestArgumentsAreChecked(t *testing.T) {
	s, err := Compile(json.RawMessage(`{
		"type":"object", "required":["name"], "additionalProperties":false, "properties":{
			"name":{"type":"string","minLength":1,"pattern":"^[a-z]+$"},
			"tree":{"$ref":"#/$defs/node"}, "n":{"type":"number","multipleOf":0.5}},
		"$defs":{"node":{"type":"object","properties":{"a/b~c":{"type":"array","items":{"$ref":"#/$defs/node"}}},"additionalProperties":false}}}`))
	require.NoError(t, err)
	for in, want := range map[string]string{
		`{"name":""}`:                                   "/name: minLength",
		`{"name":"A"}`:                                  "/name: 'A' does not match",
		`{"name":"a","x":1}`:                            "the top level: additional properties 'x'",
		`{"name":"a","n":0.3}`:                          "/n: ",
		`{"name":"a","n":1e400000}`:                     "exponent",
		`{"name":"a","n":1e-401}`:                       "exponent",
		`{"name":"a","tree":{"a/b~c":[{"a/b~c":[1]}]}}`: "/tree/a~1b~0c/0/a~1b~0c/0: got number",
		`{"n":"x"}`:                                     "missing property 'name'; at /n",
	} {
		_, err := s.Arguments(json.RawMessage(in))
		var f *fault.Fault
		require.ErrorAs(t, err, &f)
		require.Equal(t, fault.ToolBadInput, f.Code)
		require.Contains(t, f.Message, want, in)
	}
	got, err := s.Arguments(json.RawMessage(`{"name":"a","n":1e3,"tree":{"a/b~c":[{}]}}`))
	require.NoError(t, err)
	require.Equal(t, json.Number("1e3"), got["n"])
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"}}}`), []byte(`{"a":{"a":{}}}`))
	f.Add([]byte(`{"multipleOf":1e-300}`), []byte(`{"a":1e300}`))
	f.Add([]byte(`{"$dynamicRef":"#x","$dynamicAnchor":"x"}`), []byte(`{}`))
	f.Add([]byte(`{"uniqueItems":true,"items":{"enum":[1,{}]}}`), []byte(`[1,1.0]`))
	f.Fuzz(func(t *testing.T, schema, in []byte) {
		s, err := Compile(schema)
		if err != nil {
			return
		}
		if _, err := s.Arguments(in); err != nil {
			var f *fault.Fault
			require.ErrorAs(t, err, &f)
			require.True(t, utf8.ValidString(f.Message))
			require.Less(t, len(f.Message), 8<<10)
		}
	})
}
