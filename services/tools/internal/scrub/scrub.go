// Package scrub removes secrets and control characters from the output of programs and servers.
package scrub

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/waggle-dev/waggle/services/tools/internal/bound"
)

// Gone stands for a secret that was removed.
const Gone = "[redacted]"

const (
	// shortest is the length of the shortest value that counts as a secret: removing "1" and "no" would hide more than it
	// protects.
	shortest = 4
	// distinct is the length from which a value is a secret wherever it stands. A shorter one has to be a word of its own.
	distinct = 8
	// random is the length of the shortest text without a name that counts as a key.
	random = 32
)

// Scrubber removes secrets. The zero value knows only what keys look like. It is safe for concurrent use.
type Scrubber struct {
	long  []string
	short *regexp.Regexp // nil without short secrets
}

// New returns a scrubber that also removes the given values, as they are and as a part of an address.
func New(secrets ...string) Scrubber {
	var s Scrubber
	var short []string
	for _, v := range secrets {
		for _, part := range append(strings.Split(v, "\n"), url.QueryEscape(v), url.PathEscape(v)) {
			switch part = strings.TrimSpace(plain(part)); {
			case len(part) < shortest:
			case len(part) < distinct:
				short = append(short, regexp.QuoteMeta(part))
			default:
				s.long = append(s.long, part)
			}
		}
	}
	// The longest first: one may be a part of another.
	slices.SortFunc(s.long, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	s.long = slices.Compact(s.long)
	if len(short) > 0 {
		slices.SortFunc(short, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
		s.short = regexp.MustCompile(`(^|[^\pL\pN])(?:` + strings.Join(short, "|") + `)($|[^\pL\pN])`)
	}
	return s
}

// Text returns the text in at most limit bytes (and three dots), without secrets, what looks like a key, control characters
// and characters that reorder or hide text. Line ends stay.
func (s Scrubber) Text(text string, limit int) string {
	text = plain(text)
	for _, v := range s.long {
		text = strings.ReplaceAll(text, v, Gone)
	}
	if s.short != nil {
		for range 2 { // two neighbours share the character between them
			text = s.short.ReplaceAllString(text, "${1}"+Gone+"${2}")
		}
	}
	return bound.Shorten(keys(text), limit)
}

// escapes are the sequences that steer terminals.
var escapes = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])")

// plain returns the text without control characters.
func plain(text string) string {
	text = escapes.ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), "")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t', unicode.Is(unicode.Zs, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
}

var (
	userinfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/@"']+@`)
	query    = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s?#"'<>]+)\?[^\s"'<>]+`)
	scheme   = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`)
	known    = regexp.MustCompile(`\b(?:(?:sk|pk|rk)[-_]|gh[oprsu]_|github_pat_|gl[a-z]{2,5}-|xox[a-z]-|hf_|npm_|pypi-|shp[a-z]{2}_|SG\.|ya29\.|AIza|AKIA|ASIA)[A-Za-z0-9_.-]{8,}` +
		`|\beyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*`)
	// named is a value with a name that says what it is.
	named = regexp.MustCompile(`(?i)([A-Za-z0-9_.-]*(?:authorization|api[-_]?key|access[-_]?key|private[-_]?key|secret|token|passw(?:or)?d|passphrase|credential|cookie)[A-Za-z0-9_-]*["']?\s*)([:=]+)(\s*["']?)([^\s"',;&)}\]]{4,})`)
	// word is a text that may be a key of its own.
	word = regexp.MustCompile(`[A-Za-z0-9+_=-]{32,}`)
)

// keys returns the text without what looks like a key.
func keys(text string) string {
	text = userinfo.ReplaceAllString(text, "${1}"+Gone+"@")
	text = query.ReplaceAllString(text, "${1}?"+Gone)
	text = scheme.ReplaceAllString(text, "${1} "+Gone)
	text = known.ReplaceAllString(text, Gone)
	text = named.ReplaceAllStringFunc(text, func(s string) string {
		m := named.FindStringSubmatch(s)
		// In a sentence such as "invalid token: expected a string" a word follows, and no value.
		if m[2] == ":" && len(m[4]) < random/2 && !strings.ContainsFunc(m[4], unicode.IsDigit) {
			return s
		}
		return m[1] + m[2] + m[3] + Gone
	})
	return word.ReplaceAllStringFunc(text, func(s string) string {
		digits := strings.Count(strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return '0'
			}
			return 'x'
		}, s), "0")
		if digits < 3 || digits == len(s) {
			return s
		}
		return Gone
	})
}
