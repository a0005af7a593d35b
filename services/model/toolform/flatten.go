package toolform

import (
	"maps"
	"reflect"
	"slices"
)

// object is a schema of objects without alternatives.
type object struct {
	properties node
	required   []any
	rest       node // other keywords
}

// node returns the schema.
func (o object) node() node {
	n := maps.Clone(o.rest)
	n["type"], n["properties"] = "object", o.properties
	if len(o.required) > 0 {
		n["required"] = o.required
	}
	return n
}

// alternatives are the keywords that the top of a form does not have.
var alternatives = []string{"$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const", "dependentSchemas", "type", "properties", "required"}

// flatten makes one object of a schema with references, parts and alternatives. It returns false if the schema accepts no
// object. within are the definitions that it is in.
func (b *builder) flatten(v any, within []string) (object, bool) {
	o := object{properties: node{}, rest: node{}}
	in, isNode := v.(node)
	if b.steps--; !isNode || b.steps < 0 {
		return o, v != false
	}
	if types := typesOf(in); len(types) > 0 && !slices.Contains(types, "object") || !someObject(in) {
		return o, false
	}
	maps.Copy(o.properties, members(in["properties"]))
	o.required = items(in["required"])
	maps.Copy(o.rest, in)
	for _, key := range alternatives {
		delete(o.rest, key)
	}
	parts := items(in["allOf"])
	if name, ok := target(in); ok && !slices.Contains(within, name) {
		within = append(slices.Clone(within), name)
		parts = append([]any{b.defs[name]}, parts...)
	}
	for _, part := range parts {
		p, ok := b.flatten(part, within)
		if !ok {
			return o, false
		}
		o.and(p)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if in[key] == nil {
			continue
		}
		p, ok := b.either(items(in[key]), within)
		if !ok {
			return o, false
		}
		o.and(p)
	}
	b.maybe(&o, in, within)
	return o, true
}

// someObject reports whether enum and const leave an object.
func someObject(in node) bool {
	if v, ok := in["const"]; ok && kindOf(v) != "object" {
		return false
	}
	list := items(in["enum"])
	return list == nil || slices.ContainsFunc(list, func(v any) bool { return kindOf(v) == "object" })
}

// maybe adds the properties of parts that apply under conditions.
func (b *builder) maybe(o *object, in node, within []string) {
	parts := []any{in["if"], in["then"], in["else"]}
	of := members(in["dependentSchemas"])
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, of[name])
	}
	for _, part := range parts {
		if p, ok := b.flatten(part, within); ok && part != nil {
			for name, s := range p.properties {
				if o.properties[name] == nil {
					o.properties[name] = s
				}
			}
			if len(p.properties) > 0 {
				o.unclose()
			}
		}
	}
}

// unclose forgets which other properties are allowed.
func (o *object) unclose() {
	delete(o.rest, "additionalProperties")
	delete(o.rest, "unevaluatedProperties")
}

// and adds what another schema demands.
func (o *object) and(p object) {
	if len(p.properties) > 0 && len(o.properties) > 0 {
		o.unclose()
		p.rest = maps.Clone(p.rest)
		p.unclose()
	}
	for name, s := range p.properties {
		o.properties[name] = both(o.properties[name], s)
	}
	o.required = union(o.required, p.required)
	for key, v := range p.rest {
		if o.rest[key] == nil {
			o.rest[key] = v
		}
	}
}

// either returns one object for alternatives: with the properties of all, and required what each requires.
func (b *builder) either(list []any, within []string) (object, bool) {
	var all []object
	for _, e := range list {
		if p, ok := b.flatten(e, within); ok {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return object{}, false
	}
	if len(all) == 1 {
		return all[0], true
	}
	o := object{properties: node{}, rest: node{}}
	closed := true
	o.required = slices.Clone(all[0].required)
	found := make(map[string][]any)
	for _, p := range all {
		closed = closed && p.rest["additionalProperties"] == false
		o.required = slices.DeleteFunc(o.required, func(name any) bool { return !slices.Contains(p.required, name) })
		for name, s := range p.properties {
			if !slices.ContainsFunc(found[name], func(o any) bool { return reflect.DeepEqual(o, s) }) {
				found[name] = append(found[name], s)
			}
		}
	}
	for name, schemas := range found {
		o.properties[name] = oneOf(schemas)
	}
	if closed {
		o.rest["additionalProperties"] = false
	}
	return o, true
}

// oneOf returns a schema of what fits one of several: a list of values if all are lists of values.
func oneOf(list []any) any {
	if len(list) == 1 {
		return list[0]
	}
	var values []any
	for _, s := range list {
		n := members(s)
		v, is := n["const"]
		of := items(n["enum"])
		if is {
			of = []any{v}
		}
		if isOpen(s) {
			return node{}
		}
		for _, v := range of {
			if !slices.ContainsFunc(values, func(w any) bool { return reflect.DeepEqual(v, w) }) {
				values = append(values, v)
			}
		}
		if of == nil {
			return node{"anyOf": list}
		}
	}
	out := node{"enum": values}
	if types := typesOf(members(list[0])); len(types) == 1 && !slices.ContainsFunc(values, func(v any) bool { return kindOf(v) != types[0] }) {
		out["type"] = types[0]
	}
	return out
}
