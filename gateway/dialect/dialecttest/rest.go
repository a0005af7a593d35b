package dialecttest

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// The generated rest of a page's table stands between these lines.
const (
	restBegins = `<!-- written by "make generate" -->`
	restEnds   = "<!-- end -->"
)

// maxRestTypes bounds the types of one generated row, so that it fits on a line.
const maxRestTypes = 6

// restRow is a row of the rest: types with the same frames.
type restRow struct {
	types  []string
	frames string
}

// withRest adds a type, whose variants make the frames, to the rows.
func withRest(rows []restRow, kind event.Type, made []string) []restRow {
	var names []string
	for _, name := range made {
		if name != nothing {
			names = append(names, "`"+name+"`")
		}
	}
	frames := strings.Join(names, ", ")
	switch silent := slices.Contains(made, nothing); {
	case silent && frames == "":
		frames = nothing
	case silent:
		frames += ", or " + nothing
	}
	i := slices.IndexFunc(rows, func(r restRow) bool { return r.frames == frames && len(r.types) < maxRestTypes })
	if i < 0 {
		i, rows = len(rows), append(rows, restRow{frames: frames})
	}
	rows[i].types = append(rows[i].types, "`"+string(kind)+"`")
	return rows
}

// checkRest checks that the page has the rows, or writes them with -update.
func checkRest(t *testing.T, page string, rows []restRow) {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n")
	if len(rows) > 0 {
		b.WriteString("\nTypes that the table leaves out:\n\n| Canonical type | Frames |\n|---|---|\n")
	}
	for _, r := range rows {
		b.WriteString("| " + strings.Join(r.types, ", ") + " | " + r.frames + " |\n")
	}
	if len(rows) > 0 {
		b.WriteString("\n")
	}
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	before, after, found := strings.Cut(string(raw), restBegins)
	require.True(t, found, "%s has no place for the rest of the table", page)
	have, after, found := strings.Cut(after, restEnds)
	require.True(t, found, "%s has no end of the rest of the table", page)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+restBegins+b.String()+restEnds+after), 0o600))
		return
	}
	require.Equal(t, b.String(), have, "%s is stale; run make generate", page)
}

var update = flag.Bool("update", false, "rewrite the golden transcripts")

// nothing stands in the table for no frame.
const nothing = "nothing"
