package toolform

import (
	"maps"
	"slices"
)

// rebuild returns the whole document of valid keywords, its references leading to b.defs.
func (b *builder) rebuild() any {
	top := b.schema(b.doc)
	for len(b.queue) > 0 {
		at := b.queue[0]
		b.queue = b.queue[1:]
		target, _ := lookup(b.doc, at)
		b.defs[b.names[at]] = b.schema(target)
	}
	return top
}

// schema rebuilds one schema: an object, or false.
func (b *builder) schema(v any) any {
	if v == false {
		return false
	}
	in, ok := v.(node)
	if !ok || b.room <= 0 {
		return node{}
	}
	out := node{}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		rebuild := keywords[key]
		if rebuild == nil {
			continue
		}
		if w, ok := rebuild(b, in[key]); ok {
			out[key] = w
			b.room -= len(key) + size(w)
		}
	}
	b.translate(in, out)
	return nullable(in, out)
}

// keywords rebuild the values of the keywords that forms may have. The others are dropped.
var keywords map[string]func(b *builder, v any) (any, bool)

func init() { // the table and its functions refer to each other
	keywords = map[string]func(*builder, any) (any, bool){
		"type": (*builder).types, "$ref": (*builder).ref, "enum": (*builder).values, "const": (*builder).value,
		"default": (*builder).value, "examples": (*builder).values, "pattern": (*builder).pattern,
		"properties": (*builder).named, "patternProperties": (*builder).patterns, "dependentSchemas": (*builder).named,
		"required": (*builder).words, "dependentRequired": (*builder).dependent,
	}
	for _, key := range []string{"title", "description", "format"} {
		keywords[key] = (*builder).text
	}
	for _, key := range []string{"uniqueItems", "deprecated"} {
		keywords[key] = (*builder).flag
	}
	for _, key := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
		keywords[key] = (*builder).number
	}
	keywords["multipleOf"] = (*builder).positive
	for _, key := range []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"} {
		keywords[key] = (*builder).count
	}
	for _, key := range []string{"not", "if", "then", "else", "items", "contains", "propertyNames"} {
		keywords[key] = (*builder).one
	}
	for _, key := range []string{"additionalProperties", "unevaluatedItems", "unevaluatedProperties"} {
		keywords[key] = (*builder).open
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf", "prefixItems"} {
		keywords[key] = (*builder).many
	}
}

func (b *builder) one(v any) (any, bool) {
	switch v.(type) {
	case bool, node:
		return b.schema(v), true
	}
	return nil, false
}

// open is one for keywords that are usually true or false.
func (b *builder) open(v any) (any, bool) {
	if flag, ok := v.(bool); ok {
		return flag, true
	}
	return b.one(v)
}

func (b *builder) many(v any) (any, bool) {
	var list []any
	for _, e := range items(v) {
		if w, ok := b.one(e); ok {
			list = append(list, w)
		}
	}
	return list, len(list) > 0
}

func (b *builder) named(v any) (any, bool) {
	in, ok := v.(node)
	if !ok {
		empty, ok := v.([]any) // of a language whose maps and lists are one
		return node{}, ok && len(empty) == 0
	}
	out := node{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if w, ok := b.one(in[name]); ok {
			out[name] = w
		}
	}
	return out, true
}

func (b *builder) patterns(v any) (any, bool) {
	out, ok := b.named(v)
	maps.DeleteFunc(members(out), func(name string, _ any) bool { return !readable(name) })
	return out, ok && len(members(out)) > 0
}

// translate adds what older drafts and OpenAPI say in other words.
func (b *builder) translate(in, out node) {
	for flag, limit := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if in[flag] == true && out[limit] != nil {
			out[flag] = out[limit]
			delete(out, limit)
		}
	}
	if list, ok := in["items"].([]any); ok && out["prefixItems"] == nil {
		if first, ok := b.many(list); ok {
			out["prefixItems"] = first
			if rest, ok := b.one(in["additionalItems"]); ok {
				out["items"] = rest
			}
		}
	}
	of := members(in["dependencies"])
	for _, name := range slices.Sorted(maps.Keys(of)) {
		v := of[name]
		if list, ok := b.words(v); ok {
			put(out, "dependentRequired", name, list)
		} else if w, ok := b.one(v); ok {
			put(out, "dependentSchemas", name, w)
		}
	}
	if b.dialect == OpenAI && slices.Contains(typesOf(out), "array") && out["items"] == nil {
		out["items"] = node{}
	}
}

// put sets a member of a member.
func put(out node, key, name string, v any) {
	if members(out[key]) == nil {
		out[key] = node{}
	}
	if of := members(out[key]); of[name] == nil {
		of[name] = v
	}
}

// nullable makes null a value where OpenAPI 3.0 says so.
func nullable(in, out node) node {
	if in["nullable"] != true {
		return out
	}
	null := node{"type": "null"}
	if list := items(out["enum"]); list != nil && !slices.Contains(list, nil) {
		out["enum"] = append(slices.Clone(list), nil)
	}
	switch types := typesOf(out); {
	case slices.Contains(types, "null"):
	case len(types) > 0:
		list := []any{}
		for _, t := range types {
			list = append(list, t)
		}
		out["type"] = append(list, "null")
	case out["anyOf"] != nil:
		if list := items(out["anyOf"]); !slices.ContainsFunc(list, func(e any) bool { return slices.Contains(typesOf(members(e)), "null") }) {
			out["anyOf"] = append(slices.Clone(list), null)
		}
	case out["$ref"] != nil || out["allOf"] != nil || out["oneOf"] != nil:
		whole := node{}
		for _, key := range []string{"$ref", "allOf", "oneOf"} {
			if out[key] != nil {
				whole[key] = out[key]
				delete(out, key)
			}
		}
		out["anyOf"] = []any{whole, null}
	}
	return out
}
