package offline

import (
	"fmt"
	"html"
	"strings"

	"github.com/waggle-dev/waggle/docs/site"
)

// The frame of a page is written here and not by html/template: packages of templates make the linker keep every method of the
// program, which is ten megabytes of it.

// write writes formatted HTML; its strings are texts, which are escaped.
func write(out *strings.Builder, format string, texts ...string) {
	escaped := make([]any, len(texts))
	for i, t := range texts {
		escaped[i] = html.EscapeString(t)
	}
	_, _ = fmt.Fprintf(out, format, escaped...) // a Builder does not fail
}

// html returns the whole page.
func (s shown) html() string {
	var out strings.Builder
	title, class := s.Title+" · Waggle", ""
	if s.Home {
		title, class = "Waggle", "home"
	}
	write(&out, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/style.css">
</head>
<body class="%s">
<a class="skip" href="#content">Skip to content</a>
<header>
<a class="brand" href="/"><img src="/icon.svg" alt="" width="26" height="26">Waggle <span>%s</span></a>
<form action="/search" role="search"><input type="search" name="q" value="%s" placeholder="Search" aria-label="Search the documentation"></form>
</header>
<div class="columns">
`, title, class, s.Version, s.Query)
	out.WriteString(`<nav class="side" aria-label="Pages">`)
	s.menu(&out)
	out.WriteString("</nav>\n" + `<details class="menu"><summary>Pages</summary><nav aria-label="Pages, small">`)
	s.menu(&out)
	out.WriteString("</nav></details>\n" + `<main id="content">` + "\n")
	if s.Search {
		s.results(&out)
	} else {
		out.WriteString(s.Body)
	}
	s.around(&out)
	out.WriteString("</main>\n")
	s.outline(&out)
	out.WriteString("</div>\n</body>\n</html>\n")
	return out.String()
}

// menu writes all pages.
func (s shown) menu(out *strings.Builder) {
	item := func(p site.Page) {
		if p.Link == s.Link {
			write(out, `<li><a href="/%s" aria-current="page">%s</a>`, p.Link, p.Title)
		} else {
			write(out, `<li><a href="/%s">%s</a>`, p.Link, p.Title)
		}
	}
	for _, section := range s.Sections {
		write(out, "<section><p>%s</p><ul>\n", section.Title)
		for _, p := range section.Pages {
			item(p)
			if len(p.Pages) > 0 {
				out.WriteString("<ul>\n")
				for _, below := range p.Pages {
					item(below)
					out.WriteString("</li>\n")
				}
				out.WriteString("</ul>")
			}
			out.WriteString("</li>\n")
		}
		out.WriteString("</ul></section>")
	}
}

// results writes what a search has found.
func (s shown) results(out *strings.Builder) {
	out.WriteString("<h1>Search</h1>\n")
	switch {
	case len(s.Hits) > 0:
		out.WriteString(`<ol class="hits">`)
		for _, h := range s.Hits {
			write(out, `<li><a href="%s">%s`, h.Address, h.Page)
			if h.Heading != "" {
				write(out, ` <span>› %s</span>`, h.Heading)
			}
			out.WriteString("</a><p>" + h.Excerpt + "</p></li>")
		}
		out.WriteString("</ol>\n")
	case s.Query != "":
		write(out, "<p>No page has all of these words: %s</p>\n", s.Query)
	default:
		out.WriteString("<p>Type words into the field above.</p>\n")
	}
}

// around writes the ways to the neighbours of the page, and to its Markdown.
func (s shown) around(out *strings.Builder) {
	if s.Before != nil || s.Next != nil {
		out.WriteString(`<nav class="around" aria-label="Before and next">`)
		if s.Before != nil {
			write(out, `<a href="/%s"><small>Before</small>%s</a>`, s.Before.Link, s.Before.Title)
		} else {
			out.WriteString("<span></span>")
		}
		if s.Next != nil {
			write(out, `<a class="next" href="/%s"><small>Next</small>%s</a>`, s.Next.Link, s.Next.Title)
		}
		out.WriteString("</nav>\n")
	}
	if s.Link != "" {
		write(out, `<p class="markdown"><a href="/%s.md">This page as Markdown</a></p>`+"\n", s.Link)
	}
}

// outline writes the headings of a page with some.
func (s shown) outline(out *strings.Builder) {
	if s.Home || len(s.Headings) <= 2 {
		return
	}
	out.WriteString(`<nav class="outline" aria-label="On this page"><p>On this page</p><ul>` + "\n")
	for _, h := range s.Headings {
		if h.Level == 2 || h.Level == 3 {
			write(out, `<li class="level-%s"><a href="#%s">%s</a></li>`, fmt.Sprint(h.Level), h.ID, h.Text)
		}
	}
	out.WriteString("\n</ul></nav>\n")
}
