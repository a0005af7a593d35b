package schema

import (
	"reflect"

	"github.com/waggle-dev/waggle/services/tools/internal/bound"
)

// maxUnchecked bounds the list of keywords that are not checked.
const maxUnchecked = 50

// mender drops from a document what cannot be compiled.
type mender struct {
	root      any
	patterns  *patterns
	unchecked []string
	touched   map[uintptr]bool // objects that lack a keyword now, by address
	draft     generation
}

// draft7 is the draft that documents of draft 3 to 5 are read as, and oldDrafts the beginning of all before 2019.
const (
	draft7    = "http://json-schema.org/draft-07/schema#"
	oldDrafts = "json-schema.org/draft-0"
)

// A generation of drafts gives some keywords a meaning of its own.
type generation int

const (
	draft2020 generation = iota
	draft2019            // knows lists of items
	draft67              // ignores all beside a reference, too
)

// note records that a part of the schema is not checked, and why.
func (m *mender) note(path, why string) {
	switch line := quoted(path) + ": " + bound.Shorten(why, maxReason); {
	case len(m.unchecked) < maxUnchecked:
		m.unchecked = append(m.unchecked, line)
	case len(m.unchecked) == maxUnchecked:
		m.unchecked = append(m.unchecked, "and more")
	}
}

// remove removes a keyword, and those that would refuse more without it.
func (m *mender) remove(object map[string]any, at, key, why string) {
	if _, ok := object[key]; !ok {
		return
	}
	delete(object, key)
	m.touch(object)
	m.note(at+"/"+escape(key), why)
	for _, other := range leaning[key] {
		m.remove(object, at, other, "it depends on "+key)
	}
}

// leaning lists the keywords whose meaning another one narrows: what a schema does not list is additional.
var leaning = map[string][]string{
	"properties": {"additionalProperties"}, "patternProperties": {"additionalProperties"}, "prefixItems": {"items"},
	"minContains": {"contains"},
}

func (m *mender) touch(object map[string]any) {
	m.touched[reflect.ValueOf(object).Pointer()] = true
}

func (m *mender) isTouched(p *place) bool { return m.touched[reflect.ValueOf(p.object).Pointer()] }
