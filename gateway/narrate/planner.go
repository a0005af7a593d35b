package narrate

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// reasons are the members of a plan in which planners say why.
var reasons = []string{"reasoning", "rationale", "explanation", "analysis", "thoughts", "thought"}

// Planner reads what a planner writes, piece by piece, and tells what of it is for people: the text around the JSON of the plan, and
// the plan's reasons. The tasks are shown as a plan. A Planner is a value: a copy continues on its own.
type Planner struct {
	depth   int // of the JSON; 0 = text
	quoted  bool
	escaped bool
	valued  bool   // a member of the plan has its name, and no value yet
	tells   bool   // the string is a reason
	line    bool   // the line of text has begun
	fence   bool   // the line of text is a fence
	word    string // the newest string of the plan itself, as far as it may be a name
	space   string // of the text, before something that is not white space
	code    string // of a \u escape
	high    rune   // the first half of a pair of them
	told    bool   // something
}

// Planned returns what a whole text of a planner tells.
func Planned(text string) string { return new(Planner).Tell(text) }

// Tell returns what the next piece adds.
func (p *Planner) Tell(piece string) string {
	var out strings.Builder
	for _, c := range piece {
		switch {
		case p.quoted:
			p.inString(c, &out)
		case p.depth > 0:
			p.inPlan(c)
		default:
			p.inText(c, &out)
		}
	}
	p.told = p.told || out.Len() > 0
	return out.String()
}

// inText takes a character around the plan. Fences are for machines.
func (p *Planner) inText(c rune, out *strings.Builder) {
	switch {
	case c == '\n':
		p.line, p.fence = false, false
		p.space += "\n"
	case p.fence:
	case c == '{':
		p.depth, p.valued, p.word, p.space = 1, false, "", ""
	case c == '`' && !p.line:
		p.fence = true
	case c == ' ' || c == '\t' || c == '\r':
		p.space += string(c)
	default:
		if p.told || out.Len() > 0 {
			out.WriteString(p.space)
		}
		p.line, p.space = true, ""
		out.WriteRune(c)
	}
}

// inPlan takes a character of the plan's JSON, outside of its strings.
func (p *Planner) inPlan(c rune) {
	switch c {
	case '"':
		p.quoted = true
		p.tells = p.depth == 1 && p.valued && slices.Contains(reasons, strings.ToLower(p.word))
		if p.depth == 1 && !p.valued {
			p.word = ""
		}
	case ':':
		p.valued = p.valued || p.depth == 1
	case ',':
		p.valued = p.valued && p.depth != 1
	case '{', '[':
		p.depth++
	case '}', ']':
		p.depth--
		p.line, p.fence = p.line && p.depth > 0, false
	}
}

// maxReason bounds the names that a plan's member may have to be a reason.
const maxReason = 16

// inString takes a character of a string.
func (p *Planner) inString(c rune, out *strings.Builder) {
	switch {
	case p.code != "":
		if p.code += string(c); len(p.code) >= 5 {
			n, _ := strconv.ParseUint(p.code[1:], 16, 16)
			p.code = ""
			p.unit(rune(n), out)
		}
	case p.escaped:
		if p.escaped = false; c == 'u' {
			p.code = "u"
			return
		}
		p.char(unescaped(c), out)
	case c == '\\':
		p.escaped = true
	case c == '"':
		p.quoted, p.high = false, 0
	default:
		p.char(c, out)
	}
}

func unescaped(c rune) rune {
	if i := strings.IndexRune("nrtbf", c); i >= 0 {
		return rune("\n\r\t\b\f"[i])
	}
	return c
}

// unit takes a unit of UTF-16.
func (p *Planner) unit(c rune, out *strings.Builder) {
	switch whole := utf16.DecodeRune(p.high, c); {
	case p.high != 0:
		p.high = 0
		p.char(whole, out)
	case c >= 0xd800 && c < 0xdc00:
		p.high = c
	default:
		p.char(c, out)
	}
}

func (p *Planner) char(c rune, out *strings.Builder) {
	switch {
	case p.tells:
		out.WriteRune(c)
	case p.depth == 1 && !p.valued && len(p.word) < maxReason:
		p.word += string(c)
	}
}
