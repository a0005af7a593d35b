// Package markdown shows Markdown at a terminal: headings, lists, tables, code and emphasis in its styles. Texts are
// expected without control characters.
package markdown

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extended "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

var reader = newReader()

func newReader() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()
}

// deepest bounds the nesting of indented blocks. Deeper ones are not indented further.
const deepest = 8

// Render returns the text for lines of so many columns. Each block ends with a line break, and a blank line stands between two.
func Render(source string, width int) string {
	p := page{source: []byte(source)}
	root := reader.Parse(text.NewReader(p.source))
	return strings.Join(p.blocks(root, max(width, 20), 0), "\n\n") + "\n"
}

// blocks renders the blocks in a block, without the line breaks at their ends.
func (p page) blocks(parent ast.Node, width, depth int) []string {
	var all []string
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		all = append(all, p.block(n, width, depth))
	}
	return all
}

func (p page) block(n ast.Node, width, depth int) string {
	if depth > deepest {
		return ansi.Wrap(p.inline(n, nil), width, "")
	}
	switch b := n.(type) {
	case *ast.Heading:
		styles := []string{bold}
		if b.Level == 1 {
			styles = append(styles, underline)
		}
		return ansi.Wrap(p.inline(n, styles), width, "")
	case *ast.ThematicBreak:
		return paint(dim, strings.Repeat("─", width))
	case *ast.Blockquote:
		return prefix(strings.Join(p.blocks(n, width-2, depth+1), "\n\n"), paint(dim, "│ "), paint(dim, "│ "))
	case *ast.List:
		return p.list(b, width, depth)
	case *ast.FencedCodeBlock:
		return p.code(n, string(b.Language(p.source)))
	case *ast.CodeBlock:
		return p.code(n, "")
	case *ast.HTMLBlock:
		return strings.TrimRight(p.lines(n), "\n")
	case *extended.Table:
		return p.table(b)
	}
	return ansi.Wrap(p.inline(n, nil), width, "")
}

// prefix puts one text before the first line, and another one before all others.
func prefix(s, first, rest string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		switch {
		case i == 0:
			lines[i] = first + line
		case line == "":
			lines[i] = strings.TrimRight(rest, " ")
		default:
			lines[i] = rest + line
		}
	}
	return strings.Join(lines, "\n")
}

func (p page) list(l *ast.List, width, depth int) string {
	var items []string
	number, between := l.Start, "\n"
	if !short(l) {
		between = "\n\n"
	}
	for item := l.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if l.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
			number++
		}
		indent := strings.Repeat(" ", ansi.StringWidth(mark))
		items = append(items, prefix(strings.Join(p.blocks(item, width-len(indent), depth+1), between), mark, indent))
	}
	return strings.Join(items, between)
}

// short reports whether no item of a list has more than a paragraph and lists below it: blank lines add nothing then.
func short(l *ast.List) bool {
	for item := l.FirstChild(); item != nil; item = item.NextSibling() {
		for n := item.FirstChild(); n != nil; n = n.NextSibling() {
			below, is := n.(*ast.List)
			if is && !short(below) || !is && n != item.FirstChild() {
				return false
			}
		}
	}
	return true
}

// code renders a block of code as it is, behind a bar: lines that are too long are the terminal's.
func (p page) code(n ast.Node, language string) string {
	bar := paint(dim, "▏ ")
	body := strings.TrimRight(p.lines(n), "\n")
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		lines[i] = bar + paint(cyan, line)
	}
	if language != "" {
		lines = append([]string{paint(dim, "▏ "+language)}, lines...)
	}
	return strings.Join(lines, "\n")
}
