package myagent_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/gateway/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

const page = "../../docs/PROTOCOL-MYAGENT.md"

func kindOf(t *testing.T, line string) (kind string, toClient bool) {
	t.Helper()
	var v struct {
		Event     string `json:"event"`
		Timestamp string `json:"timestamp"`
	}
	require.NoError(t, json.Unmarshal([]byte(line), &v), line)
	return v.Event, v.Timestamp != ""
}

// TestExamplesOfThePage: what the server sends is a line of a transcript, what a client
// sends is understood, and both fit their schemas. No event is without an example.
func TestExamplesOfThePage(t *testing.T) {
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	known, shown, c := dialecttest.Said(t, "testdata/transcripts"), map[string]bool{}, codec(t, "")
	for _, line := range dialecttest.Shown(string(raw)) {
		kind, toClient := kindOf(t, line)
		if toClient {
			require.True(t, known[line], "an example of the page is in no transcript: %s", line)
			continue // Fits its schema: the transcripts do.
		}
		shown[kind] = true
		dialecttest.Fits(t, wire.Schema, kind, []byte(line))
		r, err := c.Request([]byte(line))
		require.NoError(t, err, line)
		if r.Action == myagent.Act {
			in := dialect.Inbound{Kind: dialecttest.Session.Kind, NewID: func() string { return "x" }}
			_, err = c.Decode([]byte(line), in)
			require.NoError(t, err, line)
		}
	}
	for _, kind := range wire.Inbound {
		require.True(t, shown[kind], "the page has no example of %s", kind)
	}
}

// TestTablesOfThePage: the page lists every event and every error code as they are.
func TestTablesOfThePage(t *testing.T) {
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	text := string(raw)
	from, to := strings.Index(text, "## Events from the client"), strings.Index(text, "## Events to the client")
	notices := strings.Index(text, "## Notices")
	require.True(t, 0 < from && from < to && to < notices)
	require.ElementsMatch(t, wire.Inbound, rows(text[from:to]))
	require.ElementsMatch(t, wire.Outbound, rows(text[to:notices]))

	var codes []string
	for _, e := range fault.Catalogue {
		var f struct {
			Event    string `json:"event"`
			Metadata struct {
				ErrorCode string `json:"error_code"`
				Strategy  string `json:"recovery_strategy"`
				Action    string `json:"recovery_action"`
			} `json:"metadata"`
		}
		require.NoError(t, json.Unmarshal(codec(t, "").Fail(fault.New(e.Code), dialecttest.Now), &f))
		row := "| `" + f.Metadata.ErrorCode + "` | `" + string(e.Code) + "` | `" + f.Event + "` | `" + f.Metadata.Strategy + f.Metadata.Action + "` |"
		require.Contains(t, text, row)
		codes = append(codes, row)
	}
	require.Len(t, regexp.MustCompile("(?m)^\\| `[A-Z0-9_]+` \\| `[A-Z0-9_]+` \\| .*$").FindAllString(text, -1), len(codes))
}

// rows returns the first cells of the tables in a text.
func rows(text string) []string {
	var out []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\|").FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// TestExamplesFitTheirSchemas: the original's examples are valid, once what it leaves
// out of every frame is there.
func TestExamplesFitTheirSchemas(t *testing.T) {
	entries, err := fs.ReadDir(wire.Examples, "examples")
	require.NoError(t, err)
	for _, e := range entries {
		raw, err := fs.ReadFile(wire.Examples, "examples/"+e.Name())
		require.NoError(t, err)
		var m map[string]any
		require.NoError(t, json.Unmarshal(raw, &m))
		if kind, _ := m["event"].(string); slices.Contains(wire.Outbound, kind) {
			if !slices.Contains(wire.Inbound, kind) {
				m["timestamp"] = "2026-03-01T12:00:00.123Z"
			}
		}
		doc, err := json.Marshal(m)
		require.NoError(t, err)
		dialecttest.Fits(t, wire.Schema, strings.TrimSuffix(e.Name(), ".json"), doc)
	}
}
