package toolform

import (
	"encoding/json"
	"maps"
	"slices"
)

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

// typesOf returns the types that a rebuilt schema names.
func typesOf(n node) []string {
	switch t := n["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var list []string
		for _, e := range t {
			if s, ok := e.(string); ok {
				list = append(list, s)
			}
		}
		return list
	}
	return nil
}

// kindOf returns the type of a value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}
