package schema

import (
	"errors"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxPattern bounds the text of a regular expression in bytes, and maxProgram its instructions; maxPrograms bounds
	// those of a schema: one of 64 KiB can ask for a million. Long patterns of real schemas (dates, ARNs) have about a
	// thousand.
	maxPattern  = 4 << 10
	maxProgram  = 10_000
	maxPrograms = 50_000
)

var errPatternSize = errors.New("the regular expression is too large")

// expression is a compiled regular expression that knows its size.
type expression struct {
	*regexp.Regexp
	size int // instructions
}

// patterns compiles the regular expressions of one schema, each once.
type patterns struct {
	known map[string]*expression
	room  int // instructions that are left
}

func newPatterns() *patterns {
	return &patterns{known: make(map[string]*expression), room: maxPrograms}
}

// compile implements jsonschema.RegexpEngine.
func (p *patterns) compile(s string) (jsonschema.Regexp, error) {
	if e := p.known[s]; e != nil {
		return e, nil
	}
	if len(s) > maxPattern {
		return nil, errPatternSize
	}
	parsed, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := instructions(parsed)
	if size > maxProgram || size > p.room {
		return nil, errPatternSize
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, err
	}
	p.room -= size
	p.known[s] = &expression{re, size}
	return p.known[s], nil
}

// instructions returns about how many instructions the program of an expression has; repeats are copies of it.
func instructions(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, maxProgram+1)
}
