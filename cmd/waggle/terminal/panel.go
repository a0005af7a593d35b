package terminal

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"
)

// Row is a line in one style. Its text may hold anything but escape sequences that the terminal should obey.
type Row struct {
	Style Style
	Text  string
}

// The size of a terminal that does not report it: that of the oldest terminals.
const (
	usualWidth  = 80
	usualHeight = 24
)

// Panel shows rows below all output until the next call; an empty list removes them. Rows are cut to the terminal's width,
// and from the top to its height. Without a terminal Panel does nothing.
func (s *Screen) Panel(rows []Row) {
	if !s.live {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(rows) == 0 {
		s.clear()
	}
	s.panel = rows
	s.changed = true
	if s.display != nil {
		s.display.Panel(rows)
		return
	}
	s.turn()
}

// paint draws the panel if the screen shows an outdated one. The caller holds the lock.
func (s *Screen) paint() {
	if !s.changed && s.shown > 0 {
		return
	}
	width, height := s.size()
	rows := s.panel[max(len(s.panel)-height+1, 0):]
	var b strings.Builder
	for i, r := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(Paint(s.color, r.Style, cut(Strip(r.Text), width-1)))
	}
	s.clear()
	_, _ = io.WriteString(s.err, b.String())
	s.shown, s.changed = len(rows), false
}

func (s *Screen) size() (width, height int) {
	if d, ok := s.err.(descriptor); ok {
		if w, h, err := term.GetSize(int(d.Fd())); err == nil && w > 1 && h > 1 {
			return w, h
		}
	}
	return usualWidth, usualHeight
}

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
