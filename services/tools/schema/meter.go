package schema

import (
	"encoding/json"
)

const (
	// maxWork bounds one check, in visits of a schema to a value: at most half a second of one processor and 120 MiB
	// for the reasons of misfits (BenchmarkWorstChecks). The largest table that a result may be takes half of it.
	maxWork = 300_000
	// step is the number of steps of a regular expression that take as long as a visit, and lookups that of names or
	// values that do.
	step, lookups = 64, 8
	// fewItems is the number of items up to which the check for equal ones compares each with each.
	fewItems = 20
)

// meter counts the work of a check, and stops when it has reached the bound.
type meter struct{ left int }

// affordable reports whether the check of a value stays within the bound. It takes no longer than such a check.
func (p *plan) affordable(v any) bool {
	m := &meter{maxWork}
	m.visit(p, v)
	return m.left >= 0
}

// visit counts a check of a value against one schema as if no part of it ended early, but for the type.
func (m *meter) visit(p *plan, v any) {
	if m.left--; m.left < 0 || p.constant {
		return
	}
	kind := kindOfValue(v)
	if kind == isNumber && p.numbers {
		m.number(v)
	}
	if p.types != 0 && p.types&kind == 0 {
		return
	}
	m.compare(p.values, v)
	switch v := v.(type) {
	case string:
		m.match(p.pattern, v)
	case map[string]any:
		m.object(p, v)
	case []any:
		m.array(p, v)
	}
	for _, sub := range p.here {
		if m.left < 0 {
			return
		}
		m.visit(sub, v)
	}
}

func kindOfValue(v any) kinds {
	switch v.(type) {
	case nil:
		return isNull
	case bool:
		return isBool
	case string:
		return isString
	case []any:
		return isArray
	case map[string]any:
		return isMap
	}
	return isNumber
}

// match counts a search of a regular expression.
func (m *meter) match(size int, s string) { m.left -= size * len(s) / step }

// number counts exact arithmetic, whose numbers grow with the exponent.
func (m *meter) number(v any) {
	n, _ := v.(json.Number)
	m.left -= 1 + (len(n)+exponent(string(n)))/32
}

// compare counts the comparisons with the values of const and enum.
func (m *meter) compare(values []any, v any) {
	if len(values) == 0 {
		return
	}
	m.left -= len(values) / lookups
	switch v.(type) {
	case map[string]any, []any, json.Number:
		for _, w := range values {
			if kindOfValue(v) == kindOfValue(w) {
				m.left -= m.size(w)
			}
			if m.left < 0 {
				return
			}
		}
	}
}

// size returns the number of values in a value, weighed as comparisons, and pays for the count.
func (m *meter) size(v any) int {
	n := 1
	switch v := v.(type) {
	case json.Number:
		m.number(v)
	case []any:
		for _, e := range v {
			n += m.size(e)
		}
	case map[string]any:
		for _, e := range v {
			n += m.size(e)
		}
	}
	return n
}

func (m *meter) object(p *plan, v map[string]any) {
	m.left -= p.names / lookups
	if p.spread {
		m.left -= len(v) / 2
	}
	if p.members == nil && p.patterns == nil && p.others == nil && p.unseen == nil && p.named == nil {
		return
	}
	for name, member := range v {
		if m.left < 0 {
			return
		}
		m.member(p, name, member)
	}
}

func (m *meter) member(p *plan, name string, v any) {
	if p.named != nil {
		m.visit(p.named, name)
	}
	sub, known := p.members[name]
	if known {
		m.visit(sub, v)
	}
	for _, re := range p.patterns {
		m.left--
		m.match(re.name.size, name)
		if re.name.MatchString(name) {
			m.visit(re.to, v)
			known = true
		}
	}
	if p.others != nil && !known {
		m.visit(p.others, v)
	}
	if p.unseen != nil {
		m.visit(p.unseen, v)
	}
}

func (m *meter) array(p *plan, v []any) {
	if p.spread {
		m.left -= len(v) / 2
	}
	if p.unique {
		m.distinct(v)
	}
	for i, e := range v {
		if m.left < 0 {
			return
		}
		if i < len(p.first) {
			m.visit(p.first[i], e)
		}
		for _, sub := range p.each {
			m.visit(sub, e)
		}
	}
}

// distinct counts the comparisons of items with each other. Many items are compared by hashes, which tell lists within
// lists apart badly.
func (m *meter) distinct(v []any) {
	flat, size := true, 0
	for _, e := range v {
		switch e.(type) {
		case map[string]any, []any:
			flat = false
		}
		if size += m.size(e); m.left < 0 {
			return
		}
	}
	switch {
	case len(v) <= fewItems:
		size *= len(v)
	case !flat:
		size *= len(v) / lookups
	}
	m.left -= size / lookups
}
