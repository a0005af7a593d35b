package offline

import (
	"cmp"
	"html"
	"regexp"
	"slices"
	"strings"
)

// Hit is a part of a page that has all words of a search.
type Hit struct {
	Page, Heading string
	Address       string
	Excerpt       string // HTML
	rank          int
}

const (
	mostHits   = 30
	mostWords  = 8
	excerptLen = 180
)

// part is the text below one heading of a page.
type part struct {
	heading heading
	text    string
}

var (
	headingLine = regexp.MustCompile(`^#{1,4} `)
	markup      = regexp.MustCompile("[`*|]+|-{3,}|\\]\\([^)]*\\)|[\\[\\]]|:::.*")
)

// parts splits a page at its headings.
func parts(source string, headings []heading) []part {
	var out []part
	end := ""
	for line := range strings.Lines(comment.ReplaceAllString(source, "")) {
		if m := fence.FindStringSubmatch(line); m != nil && end == "" {
			end = m[1]
			continue
		}
		if end != "" && strings.TrimSpace(line) == end {
			end = ""
			continue
		}
		if end == "" && headingLine.MatchString(line) && len(out) < len(headings) {
			out = append(out, part{heading: headings[len(out)]})
			continue
		}
		if len(out) > 0 {
			if end == "" {
				line = markup.ReplaceAllString(line, " ")
			}
			out[len(out)-1].text += line
		}
	}
	return out
}

// Search returns the parts of pages that have all words, the best first: words in titles count more than those in texts.
func (d *Docs) Search(query string) []Hit {
	words := strings.Fields(strings.ToLower(query))
	words = words[:min(len(words), mostWords)]
	if len(words) == 0 {
		return nil
	}
	var out []Hit
	for _, p := range d.pages {
		for _, part := range p.parts {
			if h, ok := p.found(part, words); ok {
				out = append(out, h)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Hit) int { return cmp.Compare(b.rank, a.rank) })
	return out[:min(len(out), mostHits)]
}

func (p *page) found(in part, words []string) (Hit, bool) {
	title, head, text := strings.ToLower(p.Title), strings.ToLower(in.heading.Text), strings.ToLower(in.text)
	h := Hit{Page: p.Title, Address: "/" + p.Link}
	if in.heading.Level > 1 {
		h.Heading = in.heading.Text
		h.Address += "#" + in.heading.ID
	}
	for _, w := range words {
		inTitle, inHead, inText := strings.Contains(title, w), strings.Contains(head, w), strings.Count(text, w)
		if !inTitle && !inHead && inText == 0 {
			return Hit{}, false
		}
		if inTitle {
			h.rank += 10
		}
		if inHead {
			h.rank += 20
		}
		h.rank += min(inText, 5)
	}
	h.Excerpt = excerpt(in.text, words)
	return h, true
}

// excerpt returns the text around the first of the words, with all of them marked.
func excerpt(text string, words []string) string {
	text = strings.Join(strings.Fields(text), " ")
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = regexp.QuoteMeta(w)
	}
	word := regexp.MustCompile("(?i)" + strings.Join(quoted, "|"))
	from := 0
	if at := word.FindStringIndex(text); at != nil {
		from = max(0, at[0]-excerptLen/3)
	}
	if from > 0 {
		from += strings.IndexByte(text[from:]+" ", ' ')
		from = min(from, len(text))
	}
	to := min(len(text), from+excerptLen)
	if to < len(text) {
		to = from + max(0, strings.LastIndexByte(text[from:to], ' '))
	}
	cut := text[from:to]
	var out strings.Builder
	last := 0
	for _, m := range word.FindAllStringIndex(cut, -1) {
		out.WriteString(html.EscapeString(cut[last:m[0]]) + "<mark>" + html.EscapeString(cut[m[0]:m[1]]) + "</mark>")
		last = m[1]
	}
	out.WriteString(html.EscapeString(cut[last:]))
	if to < len(text) {
		out.WriteString(" …")
	}
	return out.String()
}
