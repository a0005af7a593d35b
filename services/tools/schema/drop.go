package schema

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// dropPatterns drops the regular expressions that Go cannot compile: JSON Schema's are those of ECMA 262.
func (m *mender) dropPatterns() {
	for _, p := range surveyed(m.root).places {
		if text, ok := p.object["pattern"].(string); ok {
			if _, err := m.patterns.compile(text); err != nil {
				m.remove(p.object, p.path, "pattern", err.Error())
			}
		}
		named, ok := p.object["patternProperties"].(map[string]any)
		if !ok {
			continue
		}
		for _, text := range slices.Sorted(maps.Keys(named)) {
			if _, err := m.patterns.compile(text); err != nil {
				m.note(p.path+"/patternProperties/"+escape(text), err.Error())
				m.touch(p.object)
				delete(named, text)
				if _, all := named[""]; !all {
					named[""] = true // no property is additional for certain
				}
			}
		}
	}
}

// dropForeign drops references to other documents and to nothing, unless the document has names of its own.
func (m *mender) dropForeign() {
	s := surveyed(m.root)
	for _, p := range s.places {
		if ref, ok := p.object["$ref"].(string); ok && !s.leads(ref) {
			why := "the reference leads nowhere"
			if !strings.HasPrefix(ref, "#") {
				why = "the reference leads to another document, which is not fetched"
			}
			m.remove(p.object, p.path, "$ref", why)
			if m.draft == draft67 { // keywords beside a reference never counted
				maps.DeleteFunc(p.object, func(key string, _ any) bool { return !slices.Contains(beside, key) })
			}
		}
	}
}

// beside are the keywords that stay where a reference was dropped in drafts that ignore the others there.
var beside = []string{"$schema", "$defs", "definitions"}

// leads reports whether a reference may lead to a schema: a pointer does, or the document names its schemas.
func (s *survey) leads(ref string) bool {
	if _, _, ok := s.resolve(ref); ok {
		return true
	}
	if strings.HasPrefix(ref, "#/") || ref == "#" {
		return false
	}
	return slices.ContainsFunc(s.places, func(p *place) bool {
		return slices.ContainsFunc(names, func(key string) bool { return p.object[key] != nil })
	})
}

// names are the keywords that name schemas, or lead to names.
var names = []string{"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$dynamicRef", "$recursiveRef"}

// dropNames drops the names in a document that cannot be compiled with them, and what refers to them.
func (m *mender) dropNames() {
	for _, p := range surveyed(m.root).places {
		for _, key := range names {
			if _, text := p.object[key].(string); text || key == "$recursiveAnchor" {
				m.remove(p.object, p.path, key, "the schema does not compile with its names")
			}
		}
	}
	m.dropForeign()
}

// dropDynamic drops references whose target depends on the way to them, unless the document is alone and in one part: no
// bound of a check could be told.
func (m *mender) dropDynamic(s *survey) {
	alone := !slices.ContainsFunc(s.places, func(p *place) bool {
		ref, refers := p.object["$ref"].(string)
		return refers && !strings.HasPrefix(ref, "#") || p.path != "" && (p.object["$id"] != nil || p.object["id"] != nil)
	})
	if alone {
		return
	}
	for _, p := range s.places {
		for _, key := range []string{"$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor"} {
			m.remove(p.object, p.path, key, "its meaning depends on other documents")
		}
	}
}

// dropInvalid drops the keywords that the draft of the document refuses. It reports whether it has dropped any.
func (m *mender) dropInvalid(err error) bool {
	invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err)
	if !ok {
		return false
	}
	ve, ok := errors.AsType[*jsonschema.ValidationError](invalid.Err)
	if !ok {
		return false
	}
	_, fragment, _ := strings.Cut(invalid.URL, "#")
	fragment, err = url.PathUnescape(fragment)
	if err != nil {
		return false
	}
	base, dropped := tokensOf(fragment), false
	for _, leaf := range leaves(ve, nil) {
		dropped = m.drop(base, leaf.InstanceLocation, because(leaf)) || dropped
	}
	return dropped
}

// leaves returns the reasons of a validation error. Of alternatives it takes those that are of the right type.
func leaves(ve *jsonschema.ValidationError, list []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(ve.Causes) == 0 {
		return append(list, ve)
	}
	causes := ve.Causes
	switch ve.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		right := slices.DeleteFunc(slices.Clone(causes), func(c *jsonschema.ValidationError) bool { return wrongType(c, ve) })
		if len(right) > 0 {
			causes = right
		}
	}
	for _, c := range causes {
		list = leaves(c, list)
	}
	return list
}

// wrongType reports whether an alternative failed for the type of the value.
func wrongType(alternative, whole *jsonschema.ValidationError) bool {
	for _, leaf := range leaves(alternative, nil) {
		if _, ok := leaf.ErrorKind.(*kind.Type); ok && len(leaf.InstanceLocation) == len(whole.InstanceLocation) {
			return true
		}
	}
	return false
}

// drop drops the keyword or the schema at a place, from the schema at base on. It reports whether it was there.
func (m *mender) drop(base, place []string, why string) bool {
	v, _ := lookup(m.root, base)
	path := pointer(base)
	for len(place) > 0 {
		object, ok := v.(map[string]any)
		if !ok {
			return false
		}
		key, rest := place[0], place[1:]
		value, ok := object[key]
		if !ok {
			return false
		}
		switch {
		case oneSchema[key] && isObject(value) && len(rest) > 0:
			v, path, place = value, path+"/"+key, rest
			continue
		case len(rest) == 0 || !listed[key] && !mapped[key] && key != "items":
			m.remove(object, path, key, why)
			return true
		}
		v, ok = lookup(value, rest[:1])
		if !ok {
			return false
		}
		at := path + "/" + key + "/" + escape(rest[0])
		if len(rest) == 1 || !isObject(v) {
			replace(value, rest[0])
			m.touch(object)
			m.note(at, why)
			return true
		}
		path, place = at, rest[1:]
	}
	return false
}

// replace replaces an entry of a list or a map of schemas by the schema that accepts everything.
func replace(in any, token string) {
	switch in := in.(type) {
	case map[string]any:
		in[token] = true
	case []any:
		var i int
		if _, err := fmt.Sscan(token, &i); err == nil && i < len(in) {
			in[i] = true
		}
	}
}
