package orbit_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/orbit"
	wire "github.com/waggle-dev/waggle/proto-schemas/orbit"
)

const page = "../../docs/PROTOCOL-ORBIT.md"

// transcript returns all lines of a golden transcript, each with the type of its message.
func transcript(t *testing.T, path string) map[string]string {
	t.Helper()
	a, err := txtar.ParseFile(path)
	require.NoError(t, err)
	lines := map[string]string{}
	for _, f := range a.Files {
		for line := range strings.Lines(string(f.Data)) {
			if f.Name == "client" || f.Name == "frames" || f.Name == "replies" {
				lines[strings.TrimSpace(line)] = kindOf(line)
			}
		}
	}
	return lines
}

func kindOf(line string) string {
	var v struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal([]byte(line), &v) // No JSON is of no type.
	return v.Type
}

// TestExamplesOfThePage checks each example of the protocol's page: one to the client
// is a line of a transcript, one from the client decodes, the health answer fits.
func TestExamplesOfThePage(t *testing.T) {
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	said, shown := dialecttest.Said(t, "testdata/transcripts"), map[string]bool{}
	codec, err := orbit.Dialect().Bind(nil)
	require.NoError(t, err)
	for _, line := range dialecttest.Shown(string(raw)) {
		kind := kindOf(line)
		shown[kind] = true
		switch {
		case slices.Contains(wire.Inbound, kind):
			in := dialect.Inbound{Kind: dialecttest.Session.Kind, NewID: func() string { return "x" }}
			_, err := codec.Decode([]byte(line), in)
			require.NoError(t, err, line)
		case slices.Contains(wire.Outbound, kind):
			require.True(t, said[line], "an example of the page is in no transcript: %s", line)
		default:
			dialecttest.Is(t, wire.Schema, "health", []byte(line)) // an answer of HTTP, no frame
			continue
		}
		dialecttest.Fits(t, wire.Schema, kind, []byte(line))
	}
	for _, kind := range append(slices.Clone(wire.Inbound), wire.Outbound...) {
		require.True(t, shown[kind], "the page has no example of %s", kind)
	}
}

// TestTableOfThePage checks that the page's table lists every type, and that the
// transcripts that it names show it.
func TestTableOfThePage(t *testing.T) {
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	listed := map[string]bool{}
	rows := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (client|server) \\| .* \\| ([a-z_, ]+) \\|$").FindAllStringSubmatch(string(raw), -1)
	for _, row := range rows {
		kind, from := row[1], row[2]
		listed[kind] = true
		require.Equal(t, slices.Contains(wire.Inbound, kind), from == "client", kind)
		for name := range strings.SplitSeq(row[3], ", ") {
			lines := transcript(t, "testdata/transcripts/"+name+".txtar")
			found := false
			for _, k := range lines {
				found = found || k == kind
			}
			require.True(t, found, "transcript %s does not show %s", name, kind)
		}
	}
	for _, kind := range append(slices.Clone(wire.Inbound), wire.Outbound...) {
		require.True(t, listed[kind], "the table does not list %s", kind)
	}
}

// TestExampleOfTheHealthAnswer checks the original's example against type and schema.
func TestExampleOfTheHealthAnswer(t *testing.T) {
	raw, err := fs.ReadFile(wire.Examples, "examples/health.json")
	require.NoError(t, err)
	dialecttest.Is(t, wire.Schema, "health", raw)
	var h wire.Health
	require.NoError(t, json.Unmarshal(raw, &h))
	again, err := json.Marshal(h)
	require.NoError(t, err)
	require.JSONEq(t, string(raw), string(again))
}
