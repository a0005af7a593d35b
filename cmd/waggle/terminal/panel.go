package terminal

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Row is a line in one style. Its text may hold anything but escape sequences that the terminal should obey.
type Row struct {
	Style Style
	Text  string
}

// Rows returns a text as rows of at most so many columns.
func Rows(text string, width int) []Row {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	var rows []Row
	for line := range strings.SplitSeq(ansi.Wrap(strings.Trim(text, "\n"), width, ""), "\n") {
		rows = append(rows, Row{Text: line})
	}
	return rows
}

// The size of a terminal that does not report it: that of the oldest terminals.
const (
	usualWidth  = 80
	usualHeight = 24
)

// erase returns the sequence that removes the last n lines from the screen.
func erase(n int) string {
	if n < 2 {
		return "\r\x1b[K"
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", n-1)
}

// cut returns the longest beginning of the text that fits into the columns.
func cut(text string, width int) string {
	text = strings.NewReplacer("\n", " ", "\t", " ").Replace(text)
	if Columns(text) <= width {
		return text
	}
	n := 0
	for i, r := range text {
		if n += Columns(string(r)); n > width-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// Style is a graphic rendition.
type Style string
