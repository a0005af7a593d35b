package terminal

import (
	"strings"
	"unicode"
)

// Table returns the rows as lines with aligned columns, two spaces apart. It strips cells of sequences that could steer the
// terminal, puts each on one line, and cuts those longer than limit characters.
func Table(rows [][]string, limit int) []string {
	var widths []int
	clean := make([][]string, len(rows))
	for i, row := range rows {
		clean[i] = make([]string, len(row))
		for j, cell := range row {
			clean[i][j] = Line(cell, limit)
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], Columns(clean[i][j]))
		}
	}
	lines := make([]string, len(rows))
	for i, row := range clean {
		var b strings.Builder
		for j, cell := range row {
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", widths[j]-Columns(cell)+2))
		}
		lines[i] = strings.TrimRight(b.String(), " ")
	}
	return lines
}

// Columns returns the width of the text on a terminal.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide reports whether terminals give the character two columns: the scripts of
// East Asia and their full-width forms.
func wide(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) ||
		r >= 0x3000 && r <= 0x303f || r >= 0xff01 && r <= 0xff60
}
