package terminal

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTable(t *testing.T) {
	require.Equal(t, []string{
		"#   Task      After",
		"1   内容生成",
		"10  plain…    1",
	}, Table([][]string{{"#", "Task", "After"}, {"1", "内容生成", ""}, {"10", "plain\x1b[2J\n words", "1"}}, 6))
	require.Empty(t, Table(nil, 10))
}

// Each row is one line, and columns are aligned, for any contents of cells.
func TestTablesAreAligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.String(), 2, 2), 1, 5).Draw(t, "rows")
		for i := range rows {
			rows[i] = append([]string{rows[i][0]}, "|"+rows[i][1])
		}
		lines := Table(rows, 20)
		require.Len(t, lines, len(rows))
		at := -1
		for i, l := range lines {
			require.NotContains(t, l, "\n")
			cell := Line(rows[i][0], 20)
			rest := l[len(cell):]
			begin := Columns(cell)
			for len(rest) > 0 && rest[0] == ' ' {
				rest, begin = rest[1:], begin+1
			}
			require.Equal(t, byte('|'), rest[0])
			if at < 0 {
				at = begin
			}
			require.Equal(t, at, begin)
		}
	})
}
