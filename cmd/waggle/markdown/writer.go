package markdown

import (
	"io"
	"strings"
)

// Writer renders Markdown that comes in pieces: each block when it is whole. The zero value with Out and Width is ready.
type Writer struct {
	Out   io.Writer
	Width func() int // of the terminal's lines, in columns

	pending string
	written bool // blocks of this text
}

// Write takes the next piece of the text.
func (w *Writer) Write(piece string) {
	begins := strings.HasSuffix(strings.TrimRight(w.pending, " \t"), "\n") // a line
	w.pending += piece
	if !begins && !strings.Contains(piece, "\n") {
		return
	}
	if n := whole(w.pending); n > 0 {
		w.show(w.pending[:n])
		w.pending = w.pending[n:]
	}
}

// Rest returns what has come of the block that is not whole.
func (w *Writer) Rest() string { return w.pending }

// End renders the rest of the text. The next piece begins another one.
func (w *Writer) End() {
	w.show(w.pending)
	w.pending, w.written = "", false
}

func (w *Writer) show(blocks string) {
	if strings.TrimSpace(blocks) == "" {
		return
	}
	text := Render(blocks, w.Width())
	if w.written {
		text = "\n" + text
	}
	w.written = true
	_, _ = io.WriteString(w.Out, text)
}

// whole returns where the last block ends that is complete: before a line that is not indented, after a blank line, and outside of
// a fence of code.
func whole(text string) (end int) {
	fence, blank, at := "", false, 0
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			line += "\n" // the line that is being written: its beginning says enough
			if strings.TrimSpace(line) == "" {
				break
			}
		}
		bare := strings.TrimSpace(line)
		if fence == "" && blank && bare != "" && line[0] != ' ' && line[0] != '\t' {
			end = at
		}
		switch mark := fenceOf(bare); {
		case fence == "":
			fence = mark
		case mark != "" && mark[0] == fence[0] && len(mark) >= len(fence) && bare == mark:
			fence = ""
		}
		blank = bare == ""
		at += len(line)
	}
	return end
}

// fenceOf returns the marks with which a line begins or ends a block of code.
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, mark)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}
