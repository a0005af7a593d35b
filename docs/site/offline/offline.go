// Package offline serves the documentation on the machine itself, without scripts: "waggle docs".
package offline

import (
	"embed"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/waggle-dev/waggle/docs/site"
)

//go:embed style.css
var own embed.FS

// policy lets a page show its style and its pictures, and send a search.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Docs are the rendered pages. They are safe for concurrent use.
type Docs struct {
	version  string
	sections []site.Section
	pages    []*page // in the order of the navigation, after the first page
	byLink   map[string]*page
	files    http.Handler
}

type page struct {
	site.Page
	Section  string
	source   string
	Body     string // HTML
	Headings []heading
	parts    []part
	Before   *site.Page
	Next     *site.Page
}

// New renders the pages.
func New(version string) (*Docs, error) {
	d := &Docs{version: version, byLink: map[string]*page{}, files: http.FileServerFS(site.Files)}
	var err error
	if d.sections, err = site.Navigation(); err != nil {
		return nil, err
	}
	if err := d.add("", []site.Page{{Title: "Waggle", Link: "index"}}); err != nil {
		return nil, err
	}
	for _, s := range d.sections {
		if err := d.add(s.Title, s.Pages); err != nil {
			return nil, err
		}
	}
	for i, p := range d.pages {
		if i > 1 {
			p.Before = &d.pages[i-1].Page
		}
		if i > 0 && i+1 < len(d.pages) {
			p.Next = &d.pages[i+1].Page
		}
	}
	return d, nil
}

func (d *Docs) add(section string, pages []site.Page) error {
	for _, p := range pages {
		source, err := site.Files.ReadFile(p.Link + ".md")
		if err != nil {
			return fmt.Errorf("read page: %w", err)
		}
		body, headings, err := render(string(source))
		if err != nil {
			return fmt.Errorf("render %s: %w", p.Link, err)
		}
		q := &page{
			Page: p, Section: section, source: string(source), Body: body,
			Headings: headings, parts: parts(string(source), headings),
		}
		d.pages = append(d.pages, q)
		d.byLink[p.Link] = q
		if err := d.add(section, p.Pages); err != nil {
			return err
		}
	}
	return nil
}

// Find returns the address of the page with this link, end of a link, or title; else that of a search for the words.
func (d *Docs) Find(words string) string {
	if words = strings.TrimSuffix(strings.Trim(words, "/ "), ".md"); words == "" {
		return "/"
	}
	for _, p := range d.pages {
		if strings.EqualFold(p.Link, words) || strings.EqualFold(p.Title, words) || strings.HasSuffix(p.Link, "/"+strings.ToLower(words)) {
			return "/" + p.Link
		}
	}
	return "/search?q=" + url.QueryEscape(words)
}

// shown is the data of the frame.
type shown struct {
	*page
	Home     bool
	Sections []site.Section
	Version  string
	Query    string
	Search   bool
	Hits     []Hit
}

// ServeHTTP implements http.Handler.
func (d *Docs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	link := strings.Trim(r.URL.Path, "/")
	switch {
	case link == "style.css":
		http.ServeFileFS(w, r, own, "style.css")
	case link == "icon.svg": // before the pictures of pages
		http.ServeFileFS(w, r, site.Files, "public/icon.svg")
	case strings.HasSuffix(link, ".webp"), strings.HasSuffix(link, ".svg"):
		d.files.ServeHTTP(w, r)
	case link == "llms.txt":
		d.plain(w, d.index())
	case link == "search":
		q := r.URL.Query().Get("q")
		d.show(w, http.StatusOK, shown{page: &page{Page: site.Page{Title: "Search"}}, Search: true, Query: q, Hits: d.Search(q)})
	case link == "":
		d.show(w, http.StatusOK, shown{page: d.byLink["index"], Home: true})
	case d.byLink[link] != nil:
		d.show(w, http.StatusOK, shown{page: d.byLink[link]})
	case d.byLink[strings.TrimSuffix(link, ".md")] != nil:
		d.plain(w, d.byLink[strings.TrimSuffix(link, ".md")].source)
	default:
		lost := &page{Page: site.Page{Title: "Not found"}, Body: "<h1>Not found</h1><p>No page has this address. Search for it, or go to the <a href=\"/\">first page</a>.</p>"}
		d.show(w, http.StatusNotFound, shown{page: lost})
	}
}

func (d *Docs) show(w http.ResponseWriter, status int, s shown) {
	s.Sections, s.Version = d.sections, d.version
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, s.html()) // the browser has gone
}

func (d *Docs) plain(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
	_, _ = io.WriteString(w, text) // the browser has gone
}

// index returns llms.txt: what the pages are about, and where their Markdown is.
func (d *Docs) index() string {
	var out strings.Builder
	_, about, _ := strings.Cut(d.byLink["index"].source, "\n\n")
	about, _, _ = strings.Cut(about, "\n\n")
	_, _ = fmt.Fprintf(&out, "# Waggle\n\n> %s\n", strings.NewReplacer("\n", " ", "**", "").Replace(about))
	section := ""
	for _, p := range d.pages[1:] {
		if p.Section != section {
			section = p.Section
			_, _ = fmt.Fprintf(&out, "\n## %s\n\n", section)
		}
		_, _ = fmt.Fprintf(&out, "- [%s](/%s.md)\n", p.Title, p.Link)
	}
	return out.String()
}
