package fold_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
)

var update = flag.Bool("update", false, "rewrite the golden transcripts")

// golden are the variants that the transcripts show.
var golden = map[string]fold.Variant{"frames 1.0": fold.V1, "frames agui-0": fold.V0}

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

// TestFramesFitTheirSchemas: the published schemas hold for the frames of all logs, and refuse what has another form.
func TestFramesFitTheirSchemas(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(wire.Schema))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	require.NoError(t, c.AddResource("urn:agui", doc))
	compiled := map[string]*jsonschema.Schema{}
	seen := map[string]bool{}
	for name, events := range logs(t) {
		for _, v := range variants {
			for _, frames := range play(v, events) {
				for _, f := range frames {
					var of struct{ Type string }
					require.NoError(t, json.Unmarshal(f.Data, &of))
					if compiled[of.Type] == nil {
						compiled[of.Type], err = c.Compile("urn:agui#/$defs/" + of.Type)
						require.NoError(t, err, of.Type)
					}
					value, err := jsonschema.UnmarshalJSON(bytes.NewReader(f.Data))
					require.NoError(t, err)
					require.NoError(t, compiled[of.Type].Validate(value), "%s: %s", name, f.Data)
					seen[of.Type] = true
				}
			}
		}
	}
	require.Len(t, seen, 24, "each type has a frame: %v", seen)
	require.Error(t, compiled[wire.RunStarted].Validate(map[string]any{"type": wire.RunStarted, "runId": "a"}))
	run, err := c.Compile("urn:agui#/$defs/run")
	require.NoError(t, err)
	require.NoError(t, run.Validate(map[string]any{"threadId": "a", "runId": "b", "messages": []any{}}))
	require.Error(t, run.Validate(map[string]any{"threadId": "a", "runId": 7.0, "messages": []any{}}))
}
