package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/sdk"
)

// compare returns how what a program saw differs from what it must see.
func compare(c sdk.Case, s Seen) []string {
	var wrong []string
	for i, want := range c.Sees {
		if i >= len(s.Seen) {
			return append(wrong, fmt.Sprintf("step %d (%s) was not done", i+1, c.Program[i].Do))
		}
		if text := differs(plain(want), plain(s.Seen[i]), ""); text != "" {
			wrong = append(wrong, fmt.Sprintf("step %d (%s): %s; the program saw %s", i+1, c.Program[i].Do, text, short(s.Seen[i])))
		}
		if failed := s.Seen[i]["error"]; failed != nil && want["error"] == nil {
			wrong = append(wrong, fmt.Sprintf("step %d (%s) failed: %s", i+1, c.Program[i].Do, short(failed)))
		}
	}
	if !slices.Equal(c.Pauses, s.Pauses) {
		wrong = append(wrong, fmt.Sprintf("pauses of %v seconds, not of %v", s.Pauses, c.Pauses))
	}
	return wrong
}

// plain returns v as JSON is decoded.
func plain(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		return err.Error()
	}
	return out
}

// differs returns the first difference, empty if both are alike. An object may have more members than are wanted.
func differs(want, has any, at string) string {
	w, isObject := want.(map[string]any)
	h, both := has.(map[string]any)
	if !isObject || !both {
		if a, b := short(want), short(has); a != b {
			return fmt.Sprintf("%s has to be %s, and is %s", at, a, b)
		}
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if text := differs(w[name], h[name], at+"."+name); text != "" {
			return text
		}
	}
	return ""
}

// short returns the beginning of the JSON of v.
func short(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(raw) > 2000 {
		return string(raw[:2000]) + "..."
	}
	return string(raw)
}
