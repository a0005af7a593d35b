package demo

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// Limits of one message. Each separator costs a match of the texts around it with all
// intents; within the limits the worst message takes some tenths of a second.
const (
	maxMessage   = 64 << 10 // bytes of a message that clauses reads
	maxSentences = 64
	maxSentence  = 500 // bytes of a sentence that is split at commas and "and"
	maxWeak      = 8   // commas and "and"s of a sentence
	maxClauses   = 16  // requests that the model answers
)

// clause is one request of the user's message.
type clause struct {
	text   string        // as written, without politeness around it
	lead   string        // stands between it and the clause before: "and then"
	last   func() string // the file that "it" means; may be empty
	file   string        // the file that it names, which later clauses mean by "it"
	talk   *talk
	action *action
}

var (
	// protected matches texts that stay whole: quotations and JSON.
	protected = regexp.MustCompile(`(?s)"[^"]*"|“[^”]*”|\{.*\}`)
	// strong separators end a sentence. Weak ones end a request if both parts are requests.
	strong = regexp.MustCompile(`[?!;\n]+|\.(?:\s|$)`)
	weak   = regexp.MustCompile(`(?i)\s*,\s+|\s+(?:and|then)\s+`)
	// polite words may stand before a request without changing it.
	polite = regexp.MustCompile(`(?i)^\s*(?:(?:and|then|after that|also|next|finally|please)\b[,:]?\s*|(?:can|could|would) you\s+)*`)
)

// clauses returns the requests of the user's message in order, at least one.
func (t *talk) clauses() []*clause {
	text := t.user[:min(len(t.user), maxMessage)]
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	if text == "" {
		return []*clause{{text: "help", talk: t, action: say(help)}}
	}
	s := splitter{talk: t, last: sync.OnceValue(t.lastFile)} // Long conversations take a while to search.
	masked := protected.ReplaceAllStringFunc(text, func(p string) string { return strings.Repeat("_", len(p)) })
	from := 0
	for _, end := range append(strong.FindAllStringIndex(masked, maxSentences), []int{len(text), len(text)}) {
		s.sentence(text[from:end[0]], masked[from:end[0]])
		from = end[1]
	}
	if !s.any {
		return []*clause{{text: text, talk: t, action: unknown(text, help)}}
	}
	return s.out
}

// splitter collects the clauses of a message.
type splitter struct {
	talk *talk
	last func() string
	out  []*clause
	any  bool // the splitter has understood a clause
}

// sentence splits a sentence at the first separator between two requests, and then the rest.
func (s *splitter) sentence(text, masked string) {
	var seps [][]int
	if len(text) <= maxSentence {
		seps = weak.FindAllStringIndex(masked, maxWeak)
	}
	from, lead := 0, ""
	for i, at := range seps {
		if !s.understood(text[from:at[0]]) {
			continue
		}
		follows := s.understood(text[at[1]:])
		for _, next := range seps[i+1:] {
			follows = follows || s.understood(text[at[1]:next[0]])
		}
		if follows || !s.understood(text[from:]) {
			s.take(text[from:at[0]], lead)
			from, lead = at[1], text[at[0]:at[1]]
		}
	}
	s.take(text[from:], lead)
}

func (s *splitter) understood(text string) bool { return s.clause(text, "").parse() != nil }

// clause makes a clause of a text.
func (s *splitter) clause(text, lead string) *clause {
	p := polite.FindString(text)
	if strings.TrimSpace(text[len(p):]) == "" {
		p = ""
	}
	return &clause{text: strings.Trim(text[len(p):], " \t\r,."), lead: lead + p, last: s.last, talk: s.talk}
}

// take adds the clause of a text that has words.
func (s *splitter) take(text, lead string) {
	c := s.clause(text, lead)
	wordy := strings.ContainsFunc(c.text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	if !wordy || len(s.out) == maxClauses {
		return
	}
	if c.action = c.parse(); c.action == nil {
		c.action = unknown(c.text, `Ask me "help" to see what I do.`)
	} else {
		s.any = true
	}
	if c.file != "" {
		s.last = func() string { return c.file }
	}
	s.out = append(s.out, c)
}

// files returns the files that a clause names.
func (c *clause) files() []string {
	files := filesIn(c.text)
	if c.file != "" {
		files = append(files, c.file)
	}
	return files
}

var (
	extension = regexp.MustCompile(`[^\s./]\.[A-Za-z][A-Za-z0-9]{0,9}$`)
	pronoun   = regexp.MustCompile(`(?i)^(?:it|that|the file)$`)
)

// looksLikeFile reports whether s is almost certainly a file's name.
func looksLikeFile(s string) bool {
	return len(s) <= 255 && extension.MatchString(s) && !strings.Contains(s, "://") && !strings.ContainsAny(s, "\n\t")
}

func filesIn(text string) []string {
	var out []string
	for _, w := range strings.Fields(text) {
		if w = strings.Trim(w, `"'“”,;:?!.()`+"`"); looksLikeFile(w) {
			out = append(out, w)
		}
	}
	return out
}

// about returns the action for the file that s names.
func (c *clause) about(s string, act func(file string) *action) *action {
	c.file = unquote(s)
	if pronoun.MatchString(s) {
		c.file = c.last()
	}
	if c.file == "" {
		return say("I do not know which file you mean. Name it, please.")
	}
	return act(c.file)
}

var quotation = regexp.MustCompile("(?s)^[\"“'`](.*)[\"”'`]$")

// unquote removes the quotes around s.
func unquote(s string) string { return quotation.ReplaceAllString(strings.TrimSpace(s), "$1") }
