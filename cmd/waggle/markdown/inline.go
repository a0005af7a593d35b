package markdown

import (
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	extended "github.com/yuin/goldmark/extension/ast"
)

// inline renders what stands within a block. Each piece has the styles of all that it stands in.
func (p page) inline(parent ast.Node, styles []string) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		b.WriteString(p.piece(n, styles))
	}
	return b.String()
}

func (p page) piece(n ast.Node, styles []string) string {
	with := func(style string) []string { return append(slices.Clone(styles), style) }
	switch x := n.(type) {
	case *ast.Text:
		s := styled(styles, string(x.Value(p.source)))
		switch {
		case x.HardLineBreak():
			return s + "\n"
		case x.SoftLineBreak():
			return s + " "
		}
		return s
	case *ast.CodeSpan:
		return p.inline(n, with(cyan))
	case *ast.Emphasis:
		if x.Level > 1 {
			return p.inline(n, with(bold))
		}
		return p.inline(n, with(italic))
	case *extended.Strikethrough:
		return p.inline(n, with(strike))
	case *extended.TaskCheckBox:
		if x.IsChecked {
			return "☑ "
		}
		return "☐ "
	case *ast.Link:
		return p.link(p.inline(n, with(underline)), p.inline(n, nil), string(x.Destination))
	case *ast.Image:
		return p.link(p.inline(n, with(italic)), "", string(x.Destination))
	case *ast.AutoLink:
		return styled(with(underline), string(x.URL(p.source)))
	case *ast.RawHTML:
		return styled(styles, p.join(x.Segments))
	}
	return p.inline(n, styles)
}

// link is a text and where it leads, unless the text says so itself.
func (p page) link(shown, plain, to string) string {
	if to == "" || to == plain {
		return shown
	}
	return shown + paint(dim, " ("+to+")")
}

func styled(styles []string, s string) string {
	if len(styles) == 0 {
		return s
	}
	return paint(strings.Join(styles, ";"), s)
}
