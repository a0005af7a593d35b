package gen

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"
)

// object returns the schema of a struct, with references to the structs that it embeds.
func (d *definitions) object(t reflect.Type, closed bool) node {
	o := &structure{outer: t, members: newMembers()}
	d.fields(o, t)
	s := node{"type": "object"}
	if text := d.comments.structs[t.Name()]; text != "" {
		s["description"] = text
	}
	if o.required != nil {
		s["required"] = o.required
	}
	if o.parts != nil {
		s["allOf"] = o.parts
	}
	s["properties"] = o.members
	if closed {
		shut(s)
	}
	if d.finish != nil {
		d.finish(t, s, o.members)
	}
	if len(o.members.names) == 0 {
		delete(s, "properties")
	}
	return s
}

// structure is the schema of a struct in the making.
type structure struct {
	outer    reflect.Type
	members  *members
	required []string
	parts    []node // schemas of embedded structs
}

// fields adds the fields of a struct: the outer one, or one that it embeds.
func (d *definitions) fields(o *structure, t reflect.Type) {
	for f := range t.Fields() {
		name, optional := jsonName(f)
		switch {
		case f.Anonymous && d.flat != nil && d.flat(o.outer, f.Type):
			d.fields(o, f.Type)
			continue
		case f.Anonymous:
			o.parts = append(o.parts, d.extend(f.Type))
			continue
		case name == "-":
			continue
		}
		o.members.set(name, d.member(o.outer, t, f))
		if !optional {
			o.required = append(o.required, name)
		}
	}
}

// shut makes a schema refuse members that it does not name.
func shut(s node) node {
	if s["allOf"] != nil || s["$ref"] != nil {
		s["unevaluatedProperties"] = false
	} else {
		s["additionalProperties"] = false
	}
	return s
}

// member returns the schema of a member of the outer struct, with its comment.
func (d *definitions) member(outer, owner reflect.Type, f reflect.StructField) node {
	var s node
	if d.value != nil {
		s = d.value(outer, f)
	}
	if s == nil {
		s = d.of(f.Type)
	}
	if text := d.comments.fields[owner.Name()+"."+f.Name]; text != "" {
		s["description"] = text
	}
	return s
}

// of returns the schema of a value of a type.
func (d *definitions) of(t reflect.Type) node {
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return maps.Clone(d.raw)
	case reflect.TypeFor[time.Time]():
		return node{"type": "string", "format": "date-time"}
	}
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return node{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.of(t.Elem())
	case reflect.Struct:
		return d.ref(t)
	case reflect.Slice:
		return node{"type": "array", "items": d.of(t.Elem())}
	case reflect.Interface:
		return node{}
	}
	return node{"type": kindOf(t)}
}

// kindOf returns the type that a Go type without parts has in JSON.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "integer"
	case reflect.Float64:
		return "number"
	}
	panic(fmt.Sprintf("gen: no schema for a member of type %s", t))
}

// jsonName returns the name of a struct's field in JSON and whether it may be absent.
func jsonName(f reflect.StructField) (name string, optional bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, options == "omitempty" || options == "omitzero"
}

// with returns the schema with further keywords, or others.
func with(s, more node) node {
	out := maps.Clone(s)
	maps.Copy(out, more)
	return out
}

// ref refers to the definition of a struct, and creates it if it is missing.
func (d *definitions) ref(t reflect.Type) node { return d.define(t, false) }

// extend refers to the definition of a struct that another one embeds.
func (d *definitions) extend(t reflect.Type) node { return d.define(t, true) }

func (d *definitions) define(t reflect.Type, open bool) node {
	name := t.Name()
	switch other, ok := d.origin[name]; {
	case !ok:
		d.origin[name], d.open[name] = t, open
		d.types[name] = d.object(t, d.closed && !open)
	case other != t || d.closed && d.open[name] != open:
		panic(fmt.Sprintf("gen: two definitions of %s: %s and %s, open: %v", name, other, t, open))
	}
	return to(name)
}
