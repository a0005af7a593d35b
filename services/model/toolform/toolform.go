// Package toolform puts the schemas of tools into the form that a model provider takes. A provider refuses a whole request
// for one schema with a keyword that it does not know, so that a single tool of a single server would stop every run.
//
// The form tells a model what it may send. It never refuses what the true schema accepts for a reason of its own alone: it
// may be looser, and in what a dialect cannot say also narrower. The true schema checks the arguments elsewhere. The
// package is pure.
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

// Dialect is the form of schemas that a provider takes.
type Dialect int

// The dialects. All of them have an object at the top, without alternatives beside it, and no keyword that breaks the rules
// of JSON Schema 2020-12.
const (
	// Plain is the form for servers of which nothing else is known.
	Plain Dialect = iota
	// OpenAI has items in every array, too.
	OpenAI
	// Anthropic has arguments named [a-zA-Z0-9_.-]{1,64}, too.
	Anthropic
	// Gemini is the part of OpenAPI 3.0 that Google's models read, on their own API and on the one like OpenAI's: one type
	// each, no references, and only known keywords. Their own API wants no parameters at all where Bare says so.
	Gemini
)

const (
	// room bounds a form in bytes, about: parts that references would repeat beyond it are left open. The largest schemas of
	// widely used servers are below 20 KiB.
	room = 128 << 10
	// steps bounds the schemas that are put together: a small document can ask for any number.
	steps = 10_000
	// deepest bounds the depth of the input; the registries of tools have lower limits.
	deepest = 200
	// largest bounds the input.
	largest = 256 << 10
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

func depth(v any) (n int) {
	switch v := v.(type) {
	case node:
		for _, e := range v {
			n = max(n, depth(e))
		}
	case []any:
		for _, e := range v {
			n = max(n, depth(e))
		}
	}
	return n + 1
}

// node is a schema that is an object.
type node = map[string]any

// members returns a JSON object, or none.
func members(v any) node {
	n, _ := v.(node)
	return n
}

// items returns a JSON array, or none.
func items(v any) []any {
	l, _ := v.([]any)
	return l
}

// cut shortens a name in an error.
func cut(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "..."
	}
	return s
}
