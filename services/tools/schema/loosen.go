package schema

import (
	"slices"
)

// weak is the reason of the keywords that loosen drops.
const weak = "it depends on a part that is not checked"

// loosen drops what could refuse more now that other keywords were dropped: keywords that turn a verdict round or count
// matches, above every place that lacks one.
func (m *mender) loosen() {
	s := surveyed(m.root)
	above := make(map[*place][]*place)
	for _, p := range s.places {
		for _, e := range p.below {
			above[e.to] = append(above[e.to], p)
		}
	}
	var open []*place
	soft := make(map[*place]bool)
	reach := func(p *place) {
		if !soft[p] {
			soft[p] = true
			open = append(open, p)
		}
	}
	for _, p := range s.places {
		if m.isTouched(p) || len(m.touched) > 0 && p.leadsElsewhere() {
			reach(p)
		}
	}
	for len(open) > 0 {
		p := open[0]
		open = open[1:]
		for _, up := range above[p] {
			reach(up)
		}
	}
	for p := range soft {
		m.soften(p, soft)
	}
}

// leadsElsewhere reports whether a place refers to one that the survey does not follow: a name.
func (p *place) leadsElsewhere() bool {
	if p.object["$dynamicRef"] != nil || p.object["$recursiveRef"] != nil {
		return true
	}
	return p.object["$ref"] != nil && !slices.ContainsFunc(p.below, func(e edge) bool { return e.key == "$ref" })
}

// soften drops such keywords of one place.
func (m *mender) soften(p *place, soft map[*place]bool) {
	for _, key := range []string{"unevaluatedProperties", "unevaluatedItems"} {
		m.remove(p.object, p.path, key, weak)
	}
	for _, e := range p.below {
		if !soft[e.to] {
			continue
		}
		switch e.key {
		case "not":
			m.remove(p.object, p.path, "not", weak)
		case "if":
			for _, key := range []string{"if", "then", "else"} {
				m.remove(p.object, p.path, key, weak)
			}
		case "contains":
			m.remove(p.object, p.path, "maxContains", weak)
		case "oneOf":
			m.oneToAny(p)
		}
	}
	if hasTrue(p.object["oneOf"]) && m.isTouched(p) {
		m.oneToAny(p)
	}
}

// hasTrue reports whether a list of schemas has one that accepts everything.
func hasTrue(v any) bool {
	list, _ := v.([]any)
	for _, e := range list {
		if e == true {
			return true
		}
	}
	return false
}

// oneToAny makes alternatives of which several may match now.
func (m *mender) oneToAny(p *place) {
	list, ok := p.object["oneOf"]
	if !ok {
		return
	}
	if _, taken := p.object["anyOf"]; taken {
		m.remove(p.object, p.path, "oneOf", weak)
		return
	}
	delete(p.object, "oneOf")
	p.object["anyOf"] = list
	m.touch(p.object)
	m.note(p.path+"/oneOf", "several may match: one of them is not checked in full")
}
