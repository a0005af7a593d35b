package toolform

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
)

// maxVariants bounds the alternatives of a schema in Gemini's form.
const maxVariants = 16

// formats are those that Gemini's form knows.
var formats = map[string][]string{"string": {"date-time"}, "integer": {"int32", "int64"}, "number": {"float", "double"}}

// variant is a schema without references and combinations.
type variant struct {
	node
	within []string // the definitions that it comes from
}

// reduced returns a form with an object at the top in Gemini's form.
func (b *builder) reduced(top node) node {
	b.room = room
	out := b.typed(variant{top, nil}, "object")
	if out["properties"] == nil {
		out["properties"] = node{}
	}
	return out
}

// gemini returns one schema in Gemini's form. within are the definitions that it is in.
func (b *builder) gemini(v any, within []string) node {
	if b.steps--; b.steps < 0 || b.room <= 0 {
		return node{"type": "object"}
	}
	list, null := b.variants(v, within)
	var forms []any
	for _, of := range list {
		for _, t := range likely(of.node) {
			form := b.typed(of, t)
			if null {
				form["nullable"] = true
			}
			if len(forms) < maxVariants && !slices.ContainsFunc(forms, func(f any) bool { return reflect.DeepEqual(f, any(form)) }) {
				forms = append(forms, form)
			}
		}
	}
	switch len(forms) {
	case 0: // null alone
		return node{"type": "string", "nullable": true}
	case 1:
		return members(forms[0])
	}
	return node{"anyOf": forms}
}

// variants returns the alternatives of a schema, and whether null is one more.
func (b *builder) variants(v any, within []string) (list []variant, null bool) {
	in, ok := v.(node)
	if b.steps--; !ok || b.steps < 0 {
		return []variant{{node{}, within}}, false
	}
	base := maps.Clone(in)
	for _, key := range []string{"$ref", "allOf", "anyOf", "oneOf"} {
		delete(base, key)
	}
	null, only := takeNull(base)
	if only {
		return nil, true
	}
	list = []variant{{base, within}}
	parts, within := b.parts(in, within)
	for _, part := range parts {
		of, n := b.variants(part, within)
		list, null = cross(list, of), null || n
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if in[key] == nil {
			continue
		}
		var all []variant
		for _, e := range items(in[key]) {
			if e != false {
				of, n := b.variants(e, within)
				all, null = append(all, of...), null || n
			}
		}
		list = cross(list, all)
	}
	return list, null
}

// parts returns the schemas that a schema consists of, and the definitions that these are in.
func (b *builder) parts(in node, within []string) ([]any, []string) {
	parts := items(in["allOf"])
	name, ok := target(in)
	switch {
	case !ok:
		return parts, within
	case slices.Contains(within, name): // it continues as deep as one likes
		return append(slices.Clone(parts), node{"type": typesOr(b.defs[name], "object")}), within
	}
	return append([]any{b.defs[name]}, parts...), append(slices.Clone(within), name)
}

// typesOr returns the types of a schema, or those given.
func typesOr(v any, other string) any {
	if t := members(v)["type"]; t != nil {
		return t
	}
	return other
}

// takeNull takes null out of the types and values of a schema. It reports whether it was there, and whether it was all.
func takeNull(n node) (null, only bool) {
	if n["nullable"] == true {
		null = true
	}
	if types := typesOf(n); slices.Contains(types, "null") {
		null = true
		list := []any{}
		for _, t := range types {
			if t != "null" {
				list = append(list, t)
			}
		}
		n["type"], only = list, len(list) == 0
	}
	if v, ok := n["const"]; ok && v == nil {
		return true, true
	}
	if values := items(n["enum"]); slices.Contains(values, nil) {
		values = slices.DeleteFunc(slices.Clone(values), func(v any) bool { return v == nil })
		n["enum"], null, only = values, true, only || len(values) == 0
	}
	return null, only
}

// cross returns what fits a variant of both lists.
func cross(a, b []variant) (list []variant) {
	for _, x := range a {
		for _, y := range b {
			if len(list) < maxVariants {
				list = append(list, variant{meet(x.node, y.node), union(x.within, y.within)})
			}
		}
	}
	return list
}

// meet returns what fits two schemas, as far as one can say it. The first describes it.
func meet(a, b node) node {
	out := maps.Clone(b)
	for key, v := range a {
		w := out[key]
		switch {
		case w == nil:
			out[key] = v
		case key == "properties":
			all := maps.Clone(members(w))
			for name, s := range members(v) {
				all[name] = both(all[name], s)
			}
			out[key] = all
		case key == "required":
			out[key] = union(items(v), items(w))
		case key == "type":
			if common := slices.DeleteFunc(typesOf(a), func(t string) bool { return !slices.Contains(typesOf(b), t) }); len(common) > 0 {
				list := []any{}
				for _, t := range common {
					list = append(list, t)
				}
				out[key] = list
			}
		default:
			out[key] = v
		}
	}
	return out
}

// likely returns the types of a schema; of one that names none, those of its keywords.
func likely(n node) []string {
	if types := typesOf(n); len(types) > 0 {
		return types
	}
	switch {
	case n["properties"] != nil || n["required"] != nil:
		return []string{"object"}
	case n["items"] != nil || n["prefixItems"] != nil:
		return []string{"array"}
	}
	var types []string
	for _, v := range valuesOf(n) {
		if t := kindOf(v); !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	if len(types) > 0 {
		return types
	}
	return []string{"string", "number", "boolean"} // anything, as far as one can say it
}

// valuesOf returns the values that a schema lists.
func valuesOf(n node) []any {
	if v, ok := n["const"]; ok {
		return []any{v}
	}
	return items(n["enum"])
}

// typed returns the form of a variant for one of its types.
func (b *builder) typed(v variant, t string) node {
	out := node{"type": t}
	keep := func(keys ...string) {
		for _, key := range keys {
			if w, ok := v.node[key]; ok {
				out[key] = w
			}
		}
	}
	if s, ok := v.node["description"].(string); ok && s != "" {
		out["description"] = s
	}
	if f, ok := v.node["format"].(string); ok && slices.Contains(formats[t], f) {
		out["format"] = f
	}
	switch t {
	case "string":
		keep("minLength", "maxLength", "pattern")
		texts(out, valuesOf(v.node))
	case "integer", "number":
		keep("minimum", "maximum")
		limit(out, "minimum", v.node["exclusiveMinimum"], t, 1)
		limit(out, "maximum", v.node["exclusiveMaximum"], t, -1)
		hint(out, valuesOf(v.node))
	case "boolean":
		hint(out, valuesOf(v.node))
	case "array":
		keep("minItems", "maxItems")
		out["items"] = b.itemsOf(v)
	case "object":
		keep("minProperties", "maxProperties")
		b.propertiesOf(out, v)
	}
	b.room -= weight(out["description"]) + weight(out["enum"]) + 24
	return out
}

// texts lists the values of a string: those that are text, and not empty.
func texts(out node, values []any) {
	values = slices.DeleteFunc(slices.Clone(values), func(v any) bool { s, ok := v.(string); return !ok || s == "" })
	if len(values) > 0 {
		out["enum"] = values
	}
}

// hint says in words which values are allowed: only strings may list them.
func hint(out node, values []any) {
	var list []string
	for _, v := range values {
		switch v.(type) {
		case json.Number, bool:
			list = append(list, fmt.Sprint(v))
		}
	}
	if len(list) == 0 || len(list) > 50 {
		return
	}
	text, _ := out["description"].(string)
	out["description"] = strings.TrimSpace(text + " One of: " + strings.Join(list, ", ") + ".")
}

// limit writes an excluded limit as the next whole number, or as the limit itself.
func limit(out node, key string, v any, t string, step int64) {
	n, ok := v.(json.Number)
	if !ok || out[key] != nil {
		return
	}
	out[key] = n
	if r, ok := new(big.Int).SetString(string(n), 10); ok && t == "integer" {
		out[key] = json.Number(r.Add(r, big.NewInt(step)).String())
	}
}

// itemsOf returns the form of an array's items, of a tuple's for any place.
func (b *builder) itemsOf(v variant) node {
	var list []any
	for _, e := range append(slices.Clone(items(v.node["prefixItems"])), v.node["items"]) {
		if e != nil && e != false {
			list = append(list, e)
		}
	}
	switch {
	case len(list) == 0:
		return node{"type": "string"}
	case len(list) == 1:
		return b.gemini(list[0], v.within)
	}
	return b.gemini(node{"anyOf": list}, v.within)
}

// propertiesOf adds the properties that an object may have. Those that must be there have to be listed.
func (b *builder) propertiesOf(out node, v variant) {
	in, all := members(v.node["properties"]), node{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if in[name] != false {
			b.room -= len(name)
			all[name] = b.gemini(in[name], v.within)
		}
	}
	if len(all) == 0 {
		return
	}
	out["properties"] = all
	var required []any
	for _, name := range items(v.node["required"]) {
		if s, ok := name.(string); ok && all[s] != nil {
			required = append(required, name)
		}
	}
	if len(required) > 0 {
		out["required"] = required
	}
}
