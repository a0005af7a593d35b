package schema

// allowNull makes null a value wherever nullable says so, as OpenAPI 3.0 does: generated servers take it, and tell models
// that it is allowed. JSON Schema has no such keyword.
func allowNull(s *survey) {
	for _, p := range s.places {
		if p.object["nullable"] != true {
			continue
		}
		delete(p.object, "nullable")
		o := p.object
		switch t := o["type"].(type) {
		case string:
			o["type"] = []any{t, "null"}
			if t == "null" {
				o["type"] = t
			}
		case []any:
			if !contains(t, "null") {
				o["type"] = append(t, "null")
			}
		}
		if values, ok := o["enum"].([]any); ok && !contains(values, nil) {
			o["enum"] = append(values, nil)
		}
		if list, ok := o["anyOf"].([]any); ok {
			o["anyOf"] = append(list, map[string]any{"type": "null"})
		}
		for _, key := range []string{"$ref", "allOf", "oneOf"} {
			orNull(o, key, o[key])
		}
	}
}

// orNull moves a keyword into an alternative to null.
func orNull(o map[string]any, key string, value any) {
	if _, taken := o["anyOf"]; value == nil || taken {
		return
	}
	delete(o, key)
	o["anyOf"] = []any{map[string]any{key: value}, map[string]any{"type": "null"}}
}

func contains(list []any, v any) bool {
	for _, e := range list {
		if s, ok := v.(string); ok && e == s || v == nil && e == nil {
			return true
		}
	}
	return false
}
