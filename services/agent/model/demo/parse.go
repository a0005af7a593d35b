package demo

import (
	"regexp"
	"strings"
)

// clause is one request of the user's message.
type clause struct {
	raw  string // as written, without politeness around it
	last string // the file that "it" means; may be empty
	turn *turn  // for the names of the offered tools and the time
	file string // set by the parsers: the file that later clauses mean by "it"
}

// parsers recognise clauses. The first that does wins, so the narrow ones come first.
var parsers = []func(*clause) *task{
	parseTeam, parseUse, parseTalk, parseCount, parseCopy, parseWrite, parseImpossible, parseDate, parseArithmetic,
	parseRead, parseExists, parseSearch, parseList,
}

// parse returns the task of a clause, or nil if it is not understood.
func parse(c *clause) *task {
	if c.raw == "" {
		return nil
	}
	for _, p := range parsers {
		if k := p(c); k != nil {
			return k
		}
	}
	return nil
}

// polite is what may stand before a request without changing it.
var polite = regexp.MustCompile(`(?i)^(?:(?:and|then|after that|afterwards|also|now|next|first|finally|lastly|so|ok|okay|well|oh|but|please|pls|kindly|just)\b[,:]?\s*|` +
	`(?:can|could|would|will) you (?:please |also |now |then )*|i(?:'d| would) like (?:you )?to (?:know |see )?|i want (?:you )?to (?:know |see )?|` +
	`(?:tell|show|give) (?:me|us) (?:again )?|let (?:me|us) (?:know|see) |do you know |i need to know |help me |go ahead and )`)

// politeEnd is what may stand after one.
var politeEnd = regexp.MustCompile(`(?i)(?:[\s,]*\b(?:please|pls|thanks|thank you|for me|again|right now|now)|[\s.,!?;:]+)$`)

// trimClause removes politeness from both ends, but never all of the clause.
func trimClause(s string) string {
	s = strings.TrimSpace(s)
	for range 8 { // nobody is more polite
		before := s
		if t := polite.ReplaceAllString(s, ""); strings.TrimSpace(t) != "" {
			s = t
		}
		if t := politeEnd.ReplaceAllString(s, ""); t != "" && !protectedEnd(s) {
			s = t
		}
		if s == before {
			return s
		}
	}
	return s
}

// protectedEnd reports whether the end of s is somebody's text and not punctuation:
// that of a quotation, of JSON, or of what follows a colon.
func protectedEnd(s string) bool {
	return strings.HasSuffix(s, `"`) || strings.HasSuffix(s, "}") || operand.MatchString(s)
}

// operand matches requests whose text follows a colon and goes on to the end of
// the message, whatever is in it.
var operand = regexp.MustCompile(`(?is)^[^:"“]*\b(?:count|how many|write|save|append|add|create|make|put|say|echo|repeat|containing|with)\b[^:"“]*:\s*\S`)

// quotes are the pairs that people quote with.
var quotes = map[string]string{`"`: `"`, "“": "”", "‘": "’", "'": "'", "`": "`", "«": "»", "„": "“"}

// unquote removes one pair of quotes around s.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	for open, shut := range quotes {
		if len(s) >= len(open)+len(shut) && strings.HasPrefix(s, open) && strings.HasSuffix(s, shut) {
			inner := s[len(open) : len(s)-len(shut)]
			if !strings.Contains(inner, open) && !strings.Contains(inner, shut) {
				return inner
			}
		}
	}
	return s
}

// quoted reports whether s is a quotation.
func quoted(s string) bool { return unquote(s) != strings.TrimSpace(s) }

var (
	extension = regexp.MustCompile(`[^\s./]\.[A-Za-z][A-Za-z0-9]{0,9}$`)
	wellKnown = regexp.MustCompile(`^(?:README|LICENSE|NOTICE|CHANGELOG|TODO|NOTES|Makefile|Dockerfile|\.[A-Za-z][\w.-]*)$`)
	pronoun   = regexp.MustCompile(`(?i)^(?:it|its|that|this|them|(?:that|this|the|the same) (?:file|one|document))$`)
)

// trimName removes quotes and punctuation around a name.
func trimName(s string) string {
	s = strings.TrimSpace(s)
	if u := unquote(s); u != s {
		return u
	}
	return strings.TrimRight(strings.Trim(s, `"'“”‘’`+"`"+`,;:!?()`), ".,")
}

// looksLikeFile reports whether s can hardly be anything else than a file's name.
func looksLikeFile(s string) bool {
	if s == "" || len(s) > 255 || strings.Contains(s, "://") || strings.ContainsAny(s, "\n\t") {
		return false
	}
	return extension.MatchString(s) || wellKnown.MatchString(s[strings.LastIndexByte(s, '/')+1:])
}

// notNames are words that stand where a name could, but are none.
var notNames = regexp.MustCompile(`(?i)^(?:a|an|the|my|your|our|any|all|some|every|each|there|here|of|to|for|in|on|me|us|you|is|are|file|files|folder|folders|directory|workspace|everything|nothing|something|anything|time|date|day|today)$`)

// name returns the file that s names: a pronoun, a quotation, something that looks
// like a file or, with loose set, any one word.
func (c *clause) name(s string, loose bool) (string, bool) {
	s = strings.TrimSpace(s)
	if pronoun.MatchString(s) {
		return c.last, c.last != ""
	}
	n := trimName(s)
	switch {
	case n == "" || len(n) > 255 || strings.Contains(n, "\n"):
		return "", false
	case quoted(s):
	case strings.ContainsAny(n, " \t"):
		return "", false
	case looksLikeFile(n):
	case !loose || notNames.MatchString(n):
		return "", false
	}
	return n, true
}

// leadFile is what may stand before a file's name.
const leadFile = `(?:the |my |a |an |new |text |files? |document |note |called |named )*`

var leading = regexp.MustCompile(`(?i)^` + leadFile)

var listSeparator = regexp.MustCompile(`(?i)\s*(?:,\s*and|,|&|\band)\s+`)

// names returns the files that s names, separated by commas or "and".
func (c *clause) names(s string, loose bool) []string {
	var out []string
	for _, part := range listSeparator.Split(strings.TrimSpace(s), -1) {
		n, ok := c.name(leading.ReplaceAllString(part, ""), loose)
		if !ok {
			return nil
		}
		out = append(out, n)
	}
	if len(out) > 0 {
		c.file = out[len(out)-1]
	}
	return out
}

// match returns the parenthesised parts of the first expression that fits, or nil.
func match(s string, all ...*regexp.Regexp) []string {
	for _, re := range all {
		if m := re.FindStringSubmatch(s); m != nil {
			return m[1:]
		}
	}
	return nil
}

// re compiles an expression that has to match a whole clause; case does not matter
// and a dot matches everything.
func re(s string) *regexp.Regexp { return regexp.MustCompile(`(?is)^(?:` + s + `)$`) }
