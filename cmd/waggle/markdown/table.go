package markdown

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	extended "github.com/yuin/goldmark/extension/ast"
)

// table renders a table: columns as wide as their widest cells, a bold head, and a rule below it.
func (p page) table(t *extended.Table) string {
	var rows [][]string
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		var styles []string
		if len(rows) == 0 {
			styles = []string{bold}
		}
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, p.inline(cell, styles))
		}
		rows = append(rows, cells)
	}
	widths := widest(rows)
	if len(widths) > mostColumns {
		return crowded(rows)
	}
	lines := make([]string, 0, len(rows)+1)
	for i, cells := range rows {
		lines = append(lines, line(cells, widths, t.Alignments))
		if i == 0 {
			var rules []string
			for _, w := range widths {
				rules = append(rules, strings.Repeat("─", w))
			}
			lines = append(lines, paint(dim, strings.Join(rules, "─┼─")))
		}
	}
	return strings.Join(lines, "\n")
}

// mostColumns bounds tables that are shown as such: each row has a cell for each column, whatever stands in the source.
const mostColumns = 40

// crowded renders the cells with a text of a table that no terminal has room for.
func crowded(rows [][]string) string {
	lines := make([]string, len(rows))
	for i, cells := range rows {
		lines[i] = strings.Join(slices.DeleteFunc(cells, func(cell string) bool { return cell == "" }), " │ ")
	}
	return strings.Join(lines, "\n")
}

func widest(rows [][]string) []int {
	var widths []int
	for _, cells := range rows {
		for i, cell := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	return widths
}

func line(cells []string, widths []int, alignments []extended.Alignment) string {
	out := make([]string, len(widths))
	for i, w := range widths {
		cell := ""
		if i < len(cells) {
			cell = cells[i]
		}
		room := w - ansi.StringWidth(cell)
		before := 0
		if i < len(alignments) {
			switch alignments[i] {
			case extended.AlignRight:
				before = room
			case extended.AlignCenter:
				before = room / 2
			}
		}
		out[i] = strings.Repeat(" ", before) + cell + strings.Repeat(" ", room-before)
	}
	return strings.TrimRight(strings.Join(out, paint(dim, " │ ")), " ")
}
