package offline

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extended "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	writer "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// heading is a heading of a page.
type heading struct {
	Level int
	ID    string
	Text  string
}

var (
	fence     = regexp.MustCompile("^ *(`{3,})")
	container = regexp.MustCompile(`^::: *([a-z-]+)? *(.*)$`)
	comment   = regexp.MustCompile(`(?s)<!--.*?-->\n?`)
	label     = regexp.MustCompile(`\[([^\]]+)\]\s*$`)
	grouped   = regexp.MustCompile(`\{group (\d+) (\d+)\}`)
)

// prepared returns a page with HTML in place of the containers, whose contents stay Markdown. Fences of a group get its number and
// theirs. Comments, which are for the tests of the page, are left out.
func prepared(source string) string {
	var out strings.Builder
	groups, inGroup, end := 0, -1, ""
	for line := range strings.Lines(source) {
		m := fence.FindStringSubmatch(line)
		switch {
		case end != "":
			if strings.TrimSpace(line) == end {
				end = ""
			}
		case m != nil:
			end = m[1]
			if inGroup >= 0 {
				line = strings.Replace(line, " ", fmt.Sprintf(" {group %d %d} ", groups, inGroup), 1)
				inGroup++
			}
		case strings.HasPrefix(line, ":::"):
			c := container.FindStringSubmatch(strings.TrimSpace(line))
			switch c[1] {
			case "":
				line, inGroup = "\n</div>\n\n", -1
			case "code-group":
				line, inGroup = "\n<div class=\"tabs\">\n\n", 0
				groups++
			default:
				title := c[2]
				if title == "" {
					title = strings.ToUpper(c[1][:1]) + c[1][1:]
				}
				line = fmt.Sprintf("\n<div class=\"note %s\">\n<p class=\"title\">%s</p>\n\n", c[1], html.EscapeString(title))
			}
		case strings.HasPrefix(strings.TrimSpace(line), "<!--"):
			line = comment.ReplaceAllString(line, "")
		}
		out.WriteString(line)
	}
	return out.String()
}

// converter renders pages. Raw HTML is that of the pages, which are our own.
var converter = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(writer.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(blocks{}, 100))),
)

// render returns a page as HTML, and its headings.
func render(source string) (string, []heading, error) {
	raw := []byte(prepared(source))
	root := converter.Parser().Parse(text.NewReader(raw), parser.WithContext(parser.NewContext(parser.WithIDs(&slugs{taken: map[string]int{}}))))
	var headings []heading
	err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			name, _ := id.([]byte)
			headings = append(headings, heading{Level: n.Level, ID: string(name), Text: plain(n, raw)})
		case *ast.Link:
			n.Destination = []byte(target(string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return "", nil, err
	}
	var out bytes.Buffer
	err = converter.Renderer().Render(&out, raw, root)
	return out.String(), headings, err
}

// plain returns the text of a node.
func plain(n ast.Node, source []byte) string {
	var out strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			out.Write(c.Segment.Value(source))
		case *ast.String:
			out.Write(c.Value)
		default:
			out.WriteString(plain(c, source))
		}
	}
	return out.String()
}

// target returns the address of a link: pages have no ending.
func target(link string) string {
	if strings.Contains(link, "://") {
		return link
	}
	path, anchor, found := strings.Cut(link, "#")
	path = strings.TrimSuffix(path, ".md")
	if path == "index" || strings.HasSuffix(path, "/index") {
		path = strings.TrimSuffix(path, "index")
		if path == "" {
			path = "./"
		}
	}
	if found {
		path += "#" + anchor
	}
	return path
}

// slugs gives headings the ids that VitePress gives them.
type slugs struct{ taken map[string]int }

var special = regexp.MustCompile("[\\s~`!@#$%^&*()\\-_+=\\[\\]{}|\\\\;:\"'“”‘’<>,.?/]+")

// Generate implements parser.IDs.
func (s *slugs) Generate(value []byte, _ ast.NodeKind) []byte {
	slug := strings.ToLower(strings.Trim(special.ReplaceAllString(string(value), "-"), "-"))
	if slug != "" && unicode.IsDigit(rune(slug[0])) {
		slug = "_" + slug
	}
	if n := s.taken[slug]; n > 0 {
		s.taken[slug]++
		return fmt.Appendf(nil, "%s-%d", slug, n)
	}
	s.taken[slug] = 1
	return []byte(slug)
}

// Put implements parser.IDs.
func (s *slugs) Put(value []byte) { s.taken[string(value)]++ }

// blocks renders code with its title, and tables that scroll.
type blocks struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, code)
	r.Register(extended.KindTable, table)
	r.Register(ast.KindImage, picture)
}

func table(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := "</table></div>\n"
	if entering {
		tag = "<div class=\"table\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>\n"
	}
	_, err := w.WriteString(tag)
	return ast.WalkContinue, err
}

// picture shows NAME-dark.webp in place of NAME-light.webp in the dark.
func picture(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n, ok := node.(*ast.Image)
	if !entering || !ok {
		return ast.WalkContinue, nil
	}
	address := string(n.Destination)
	img := fmt.Sprintf("<img src=%q alt=\"%s\" loading=\"lazy\">", html.EscapeString(address), html.EscapeString(plain(n, source)))
	if light, ok := strings.CutSuffix(address, "-light.webp"); ok {
		img = fmt.Sprintf("<picture><source media=\"(prefers-color-scheme: dark)\" srcset=%q>%s</picture>", html.EscapeString(light+"-dark.webp"), img)
	}
	_, err := w.WriteString(img)
	return ast.WalkSkipChildren, err
}

func code(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n, ok := node.(*ast.FencedCodeBlock)
	if !entering || !ok {
		return ast.WalkContinue, nil
	}
	info := ""
	if n.Info != nil {
		info = string(n.Info.Segment.Value(source))
	}
	name := ""
	if m := label.FindStringSubmatch(info); m != nil {
		name = html.EscapeString(m[1])
	}
	var body strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		body.Write(line.Value(source))
	}
	language := html.EscapeString(string(n.Language(source)))
	pre := fmt.Sprintf("<pre tabindex=\"0\"><code>%s</code></pre>", html.EscapeString(body.String()))
	m := grouped.FindStringSubmatch(info)
	switch {
	case m != nil:
		checked := ""
		if m[2] == "0" {
			checked = " checked"
		}
		id := "tab-" + m[1] + "-" + m[2]
		_, _ = fmt.Fprintf(w, "<input type=\"radio\" name=\"tab-%s\" id=%q%s><label for=%q>%s</label><div class=\"code\">%s</div>\n", m[1], id, checked, id, name, pre)
	case name != "":
		_, _ = fmt.Fprintf(w, "<div class=\"code %s\"><p class=\"file\">%s</p>%s</div>\n", language, name, pre)
	default:
		_, _ = fmt.Fprintf(w, "<div class=\"code %s\">%s</div>\n", language, pre)
	}
	return ast.WalkSkipChildren, nil
}
