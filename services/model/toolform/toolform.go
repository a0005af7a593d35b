// Package toolform puts the schemas of tools into the form that a model provider takes. A provider refuses a whole request
// for one schema with a keyword that it does not know, so that a single tool of a single server would stop every run.
//
// The form tells a model what it may send. It is looser than the true schema, and narrower only where a dialect has no
// words for more; the true schema checks the arguments elsewhere. The package is pure.
package toolform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
	"github.com/waggle-dev/waggle/services/model"
)

var (
	anthropicKey = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	geminiName   = regexp.MustCompile(`^[a-zA-Z_]`)
)

// Fit returns the tool with its schema in the form of a dialect. The error names the tool and says why the provider cannot
// be offered it. Fit is idempotent.
func Fit(t model.ToolSpec, d Dialect) (model.ToolSpec, error) {
	form, err := schemaOf(t.InputSchema, d)
	if err != nil {
		return model.ToolSpec{}, fmt.Errorf("the tool %s: %w", t.Name, err)
	}
	if d == Gemini && !geminiName.MatchString(t.Name) {
		return model.ToolSpec{}, fmt.Errorf("the tool %s: its name does not begin with a letter or an underscore", t.Name)
	}
	t.InputSchema = form
	return t, nil
}

// FitAll returns the tools that fit a dialect, in their order, and the reasons why the others do not.
func FitAll(list []model.ToolSpec, d Dialect) (fit []model.ToolSpec, out []error) {
	for _, t := range list {
		if f, err := Fit(t, d); err != nil {
			out = append(out, err)
		} else {
			fit = append(fit, f)
		}
	}
	return fit, out
}

// Bare reports whether a form has no arguments.
func Bare(form json.RawMessage) bool {
	var f struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	return json.Unmarshal(form, &f) == nil && len(f.Properties) == 0
}

func schemaOf(raw json.RawMessage, d Dialect) (json.RawMessage, error) {
	doc, err := decode(raw)
	if err != nil {
		return nil, err
	}
	b := newBuilder(doc, d)
	top, err := b.top()
	if err != nil {
		return nil, err
	}
	if d == Anthropic {
		for name := range members(top["properties"]) {
			if !anthropicKey.MatchString(name) {
				return nil, fmt.Errorf("the name of its argument %q has other characters than a-z, A-Z, 0-9, _, . and -, or more than 64", cut(name))
			}
		}
	}
	if reflect.DeepEqual(any(top), doc) {
		return bytes.Clone(raw), nil // in the server's order
	}
	form, err := plainjson.Marshal(top)
	if err != nil {
		return nil, err
	}
	if len(form) > 4*room {
		return nil, fmt.Errorf("its schema has %d bytes in the form that the provider takes", len(form))
	}
	return form, nil
}

// decode reads a schema; a missing one accepts every object.
func decode(raw json.RawMessage) (any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	if len(raw) > largest {
		return nil, fmt.Errorf("its schema is larger than %d bytes", largest)
	}
	if !json.Valid(raw) {
		return nil, fmt.Errorf("its schema is not valid JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("its schema is not valid JSON: %w", err)
	}
	if depth(doc) > deepest {
		return nil, fmt.Errorf("its schema is nested more than %d levels deep", deepest)
	}
	return doc, nil
}

// cut shortens a name in an error.
func cut(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "..."
	}
	return s
}
