package demo

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxClauses bounds how many requests of one message are worked on.
	maxClauses = 16
	// maxWeak bounds the commas and "and"s that are tried as separators, and
	// maxWeakText the message in which they are: each costs a parse of what is on both sides.
	maxWeak     = 12
	maxWeakText = 2_000
	// maxStrong bounds the ends of sentences that are tried, for the same reason.
	maxStrong = 64
	// maxMessage is how much of a message is looked at.
	maxMessage = 64 << 10
	// maxTried bounds the text that is parsed in search of separators: a quarter of a
	// second on a slow machine. After it, sentences end where they seem to.
	maxTried = 128 << 10
	// window is more than any separator is long.
	window = 64
)

// strong separators end a request, unless it has only begun. Weak ones do if the
// parts make more sense than the whole.
var (
	strongSep = regexp.MustCompile(`^(?:\s*[?!;\n]+\s*|\.\s+)`)
	weakSep   = regexp.MustCompile(`(?i)^(?:\s*,\s*(?:and\s+then\s+|and\s+also\s+|and\s+|then\s+|also\s+)?|\s+(?:and\s+then|and\s+also|and|then)\s+)`)
	begun     = regexp.MustCompile(`(?i)^(?:write|save|append|add|put|create|make|say|echo|repeat)\b`)
)

// sep is a possible end of a request.
type sep struct {
	from, to int
	strong   bool
}

// separators finds the places where s may be split: none inside quotations,
// braces, numbers and names.
func separators(s string) []sep {
	var out []sep
	var p protection
	weak, strong := 0, 0
	for i := 0; i < len(s) && strong < maxStrong; {
		r, size := utf8.DecodeRuneInString(s[i:])
		if p.covers(s, i, r) || !unicode.IsSpace(r) && !strings.ContainsRune(",;.?!", r) {
			i += size
			continue
		}
		at, ok := separator(s, i)
		switch {
		case !ok, !at.strong && (weak == maxWeak || len(s) > maxWeakText):
			i += size
			continue
		case at.strong:
			strong++
		default:
			weak++
		}
		out = append(out, at)
		i = at.to
	}
	return out
}

// separator returns the separator that begins at i.
func separator(s string, i int) (sep, bool) {
	ahead := s[i:min(len(s), i+window)]
	if m := strongSep.FindString(ahead); m != "" {
		return sep{i, i + len(m), true}, true
	}
	m := weakSep.FindString(ahead)
	return sep{i, i + len(m), false}, m != "" && !inNumber(s, i, len(m))
}

// protection knows whether a place is inside a quotation or braces.
type protection struct {
	shut  string // the end of the quotation
	depth int    // of braces
}

// covers takes in the next character and reports whether it is protected.
func (p *protection) covers(s string, i int, r rune) bool {
	switch {
	case p.shut != "":
		if strings.HasPrefix(s[i:], p.shut) {
			p.shut = ""
		}
		return true
	case r == '{':
		p.depth++
	case r == '}':
		p.depth = max(0, p.depth-1)
		return true
	case p.depth == 0:
		p.shut = opening(s, i)
	}
	return p.depth > 0 || p.shut != ""
}

// opening returns the quote that ends the quotation which begins at i, or "". It
// begins after a space, and it has an end.
func opening(s string, i int) string {
	for open, shut := range quotes {
		if !strings.HasPrefix(s[i:], open) {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		if i > 0 && !unicode.IsSpace(before) && !strings.ContainsRune("(:=[,", before) {
			return ""
		}
		rest := s[i+len(open):]
		if j := strings.Index(rest, shut); j > 0 {
			return shut
		}
	}
	return ""
}

// inNumber reports whether the separator at i is a comma between digits.
func inNumber(s string, i, n int) bool {
	return s[i:i+n] == "," && i > 0 && i+n < len(s) && s[i-1] >= '0' && s[i-1] <= '9' && s[i+n] >= '0' && s[i+n] <= '9'
}

// tasks returns what the user's message asks for, in order. There is at least one.
func tasks(t *turn) []*task {
	p := &splitter{turn: t, last: t.lastFile(), cache: map[string]bool{}}
	text := clean(t.user)
	p.split(text)
	switch {
	case text == "":
		return []*task{help()}
	case !p.any:
		return []*task{unknown(text, true)}
	}
	return p.out
}

// clean returns as much of a message as is looked at.
func clean(text string) string {
	if len(text) > maxMessage {
		text = text[:maxMessage]
	}
	return strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
}

type splitter struct {
	turn  *turn
	last  string
	out   []*task
	parts []part          // what each task was made of
	any   bool            // something was understood
	tried int             // bytes parsed in search of separators
	cache map[string]bool // whether a text is understood, given last
}

// split takes a text apart.
func (p *splitter) split(rest string) {
	lead := ""
	for rest != "" && len(p.out) < maxClauses {
		cut := p.first(rest)
		p.take(rest[:cut.from], lead)
		lead = rest[cut.from:cut.to]
		rest = strings.TrimLeft(rest[cut.to:], " \t\r\n?!;")
	}
}

// first returns where the first request of s ends.
func (p *splitter) first(s string) sep {
	all := separators(s)
	end := sep{len(s), len(s), true}
	for i, at := range all {
		left := s[:at.from]
		switch {
		case strings.TrimSpace(left) == "":
			if at.strong {
				return at
			}
		case operand.MatchString(trimClause(left)): // its text goes on to the end
			return end
		case at.strong:
			if p.understood(left) || !begun.MatchString(trimClause(left)) {
				return at
			}
		case p.understood(left) && (p.sensible(s[at.to:]) || !p.understood(s[:strongAfter(all[i:], len(s))])):
			return at
		}
	}
	return end
}

// strongAfter returns where the sentence ends that the separators are in.
func strongAfter(all []sep, end int) int {
	for _, at := range all {
		if at.strong {
			return at.from
		}
	}
	return end
}

// sensible reports whether s begins with a request that is understood.
func (p *splitter) sensible(s string) bool {
	for _, at := range separators(s) {
		if p.understood(s[:at.from]) {
			return true
		}
		if at.strong {
			return false
		}
	}
	return p.understood(s)
}

func (p *splitter) understood(s string) bool {
	known, ok := p.cache[s]
	if !ok && p.tried < maxTried {
		p.tried += len(s)
		known = parse(p.clause(s)) != nil
		p.cache[s] = known
	}
	return known
}

func (p *splitter) clause(s string) *clause {
	return &clause{raw: trimClause(s), last: p.last, turn: p.turn}
}

// take adds the task of one request, and what stood before it.
func (p *splitter) take(s, lead string) {
	c := p.clause(s)
	if c.raw == "" || !strings.ContainsFunc(c.raw, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return
	}
	k := parse(c)
	p.any = p.any || k != nil
	if k == nil {
		k = unknown(strings.TrimSpace(s), false)
	}
	p.out = append(p.out, k)
	before, _, _ := strings.Cut(s, c.raw)
	p.parts = append(p.parts, part{
		text: c.raw, lead: lead + " " + before, effect: k.effect, small: k.small, files: filesIn(c),
	})
	if c.file != "" && c.file != p.last {
		p.last = c.file
		clear(p.cache)
	}
}

// filesIn returns the files that a clause names.
func filesIn(c *clause) []string {
	var out []string
	for _, w := range strings.Fields(c.raw) {
		if w = trimName(w); looksLikeFile(w) {
			out = append(out, w)
		}
	}
	if c.file != "" {
		out = append(out, c.file)
	}
	return out
}
