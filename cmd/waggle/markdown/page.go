package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// Styles are the codes of SGR.
const (
	bold      = "1"
	dim       = "2"
	italic    = "3"
	underline = "4"
	strike    = "9"
	cyan      = "36"
)

// page renders a text.
type page struct{ source []byte }

func paint(code, s string) string {
	if s == "" {
		return ""
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p page) lines(n ast.Node) string { return p.join(n.Lines()) }

// join returns the parts of the source.
func (p page) join(parts *text.Segments) string {
	var b strings.Builder
	for i := range parts.Len() {
		at := parts.At(i)
		b.Write(at.Value(p.source))
	}
	return b.String()
}
