package verify

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Row is what a type of event becomes.
type Row struct {
	Frames []string
	None   bool // it may give no frame
}

var quoted = regexp.MustCompile("`([^`]+)`")

// Table reads from a page of the documentation the frames that a dialect makes of each type of event.
func Table(t testing.TB, page string) map[event.Type]Row {
	t.Helper()
	raw, err := os.ReadFile("../docs/" + page) //nolint:gosec // a page of the repository
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(raw), "\n## Watching any run\n")
	text, _, _ = strings.Cut(text, "\n## ")
	_, text, found := strings.Cut(text, "\n| Canonical type |")
	require.True(t, found, page)
	out := map[event.Type]Row{}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		r := Row{None: strings.Contains(cells[2], "nothing")}
		for _, f := range quoted.FindAllStringSubmatch(cells[2], -1) {
			r.Frames = append(r.Frames, f[1])
		}
		if len(r.Frames) == 1 && r.Frames[0] == "AGENT_STATUS" {
			r.None = true // in a team only if it has changed
		}
		for _, kind := range quoted.FindAllStringSubmatch(cells[1], -1) {
			out[event.Type(kind[1])] = r
		}
	}
	return out
}

// Complete requires that the frames of a viewer are, event by event, those that the documentation names for the log,
// and returns the number of their events. The last event has to be shown. Deltas may have been merged.
func Complete(t testing.TB, s *client.Viewer, log []Stored) int {
	t.Helper()
	by := map[uint64][]string{}
	for _, one := range s.Shown() {
		by[one.Seq] = append(by[one.Seq], one.Kind)
	}
	shown := slices.Sorted(maps.Keys(by))
	require.NotEmpty(t, shown)
	require.LessOrEqual(t, shown[len(shown)-1], uint64(len(log)))
	table := Table(t, s.Page)
	for _, e := range log {
		inner := event.Unwrap(e.Event)
		row, known := table[inner.Type]
		require.True(t, known, "%s says nothing of %s", s.Page, inner.Type)
		if inner.Type != event.MessageDelta && inner.Type != event.ReasoningDelta {
			require.True(t, row.None || len(by[e.Sequence]) > 0, "%s does not show %d %s of %q: %s", s.Name, e.Sequence, inner.Type, inner.Via.Route, e.Data)
		}
		for _, kind := range by[e.Sequence] {
			require.Contains(t, row.Frames, kind, "%s: %s", s.Name, inner.Type)
		}
	}
	return len(by)
}
