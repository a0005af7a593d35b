package schema

import (
	"bytes"
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
		`{`, `7`, `false`, `"object"`, `[{"type":"object"}]`, `{"type":"object"} {}`, `{"minimum":1e-99999}`,
		`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		`{"description":"` + strings.Repeat("x", maxSchema) + `"}`,
		`{"anyOf":[{}` + strings.Repeat(",{}", maxSchemas) + `]}`,
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
	for _, ref := range []string{"file://" + file, srv.URL + "/schema.json", "other.json", "file:///etc/passwd"} {
		for _, doc := range []string{
			`{"properties":{"a":{"$ref":"` + ref + `"}}}`, `{"$id":"http://example.com/x","properties":{"a":{"$ref":"` + ref + `"}}}`,
			`{"$schema":"` + ref + `","properties":{"a":{"$ref":"` + ref + `"}}}`,
		} {
			s, err := Compile(json.RawMessage(doc))
			require.NoError(t, err)
			require.Contains(t, strings.Join(s.Unchecked(), "\n"), "/properties/a/$ref: the reference leads to another document, which is not fetched")
			_, err = s.Arguments(json.RawMessage(`{"a":7}`))
			require.NoError(t, err)
		}
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

// FuzzSchema: no document breaks the compiler, and one that follows its draft is checked as by the compiler alone.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"}}}`), []byte(`{"a":{"a":{}}}`))
	f.Add([]byte(`{"multipleOf":1e-300}`), []byte(`{"a":1e300}`))
	f.Add([]byte(`{"$dynamicRef":"#x","$dynamicAnchor":"x"}`), []byte(`{}`))
	f.Add([]byte(`{"uniqueItems":true,"items":{"enum":[1,{}]}}`), []byte(`[1,1.0]`))
	f.Add([]byte(`{"properties":{"a":{"type":"int","required":true,"pattern":"(?!","not":{"minimum":"x"}},"b":7},"oneOf":[{},7]}`), []byte(`{"a":1}`))
	f.Add([]byte(`{"$schema":"tool:///input","$id":"tool:///input","$ref":"#/$defs/~1","$defs":{"/":{"items":[{"$anchor":"x"}]}}}`), []byte(`{"a":1}`))
	f.Add([]byte(`{"allOf":[{"$ref":"https://json-schema.org/draft/2020-12/schema"}],"$dynamicAnchor":"meta"}`), []byte(`{"properties":{}}`))
	f.Fuzz(func(t *testing.T, schema, in []byte) {
		s, err := Compile(schema)
		if err != nil {
			return
		}
		_, err = s.Arguments(in)
		if err != nil {
			var f *fault.Fault
			require.ErrorAs(t, err, &f)
			require.True(t, utf8.ValidString(f.Message))
			require.Less(t, len(f.Message), 8<<10)
		}
		before := compiledAsBefore(schema)
		if v, _ := decode(in, ofArguments); before != nil && isObject(v) && len(s.Unchecked()) == 0 && !bytes.Contains(schema, []byte("nullable")) {
			require.Equal(t, before.Validate(v) == nil, err == nil, "%v", err)
		}
	})
}
