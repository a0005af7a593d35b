// Package schema compiles the JSON Schemas of tools and checks arguments and results against them. Schemas are untrusted:
// compiling reads no other document, and checking spends no time on numbers with huge exponents.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	printer "golang.org/x/text/message"

	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/tools/internal/bound"
)

const (
	// maxSchema bounds the input schema of one tool. The largest schemas of widely used servers are below 20 KiB.
	maxSchema = 64 << 10
	// maxExponent bounds numbers: validation calculates exactly, and 1e999999999 written out has a gigabyte. Every float64
	// is below.
	maxExponent = 400
	// maxReasons bounds the list of one refusal; a model corrects the first ones.
	maxReasons = 5
	// schemaURL names the schema within its own compiler.
	schemaURL = "tool:///input"
)

var english = printer.NewPrinter(language.English)

// noLoader refuses references to other documents: a tool server would choose the address to fetch.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to another document, %q, which is not fetched", url)
}

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct{ compiled *jsonschema.Schema }

// Compile compiles a JSON Schema of at most 64 KiB that refers to no other document.
func Compile(raw json.RawMessage) (*Schema, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("the schema is larger than %d bytes", maxSchema)
	}
	doc, err := decode(raw)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, err
	}
	return &Schema{compiled}, nil
}

// Arguments returns the arguments of a call as an object that fits the schema, or INVALID_INPUT with the JSON pointer and
// the reason of each misfit. Missing arguments become an empty object.
func (s *Schema) Arguments(raw json.RawMessage) (map[string]any, error) {
	if b := bytes.TrimSpace(raw); len(b) == 0 || string(b) == "null" {
		raw = json.RawMessage("{}")
	}
	v, err := decode(raw)
	if err != nil {
		return nil, fault.Newf(fault.ToolBadInput, "The arguments are not usable JSON: %s.", reason(err)).Wrap(err)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, fault.Newf(fault.ToolBadInput, "The arguments must be a JSON object.")
	}
	if f := s.fits(v, fault.ToolBadInput, "The arguments do not fit the tool's schema"); f != nil {
		return nil, f
	}
	return object, nil
}

// CheckResult returns nil if a result fits the schema, or INVALID_OUTPUT with the JSON
// pointer and the reason of each misfit.
func (s *Schema) CheckResult(raw json.RawMessage) error {
	v, err := decode(raw)
	if err != nil {
		return fault.Newf(fault.BadOutput, "The tool's answer is not usable JSON: %s.", reason(err)).Wrap(err)
	}
	if f := s.fits(v, fault.BadOutput, "The tool's answer does not fit its schema"); f != nil {
		return f
	}
	return nil
}

func (s *Schema) fits(v any, code fault.Code, what string) *fault.Fault {
	err := s.compiled.Validate(v)
	if err == nil {
		return nil
	}
	ve, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return fault.New(code).Wrap(err)
	}
	return misfit(ve, code, what)
}

// decode reads JSON with numbers of bounded size.
func decode(raw json.RawMessage) (any, error) {
	if err := strictjson.Check(raw); err != nil {
		return nil, err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return v, checkNumbers(v)
}

func checkNumbers(v any) error {
	switch v := v.(type) {
	case json.Number:
		return checkNumber(string(v))
	case []any:
		for _, e := range v {
			if err := checkNumbers(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, e := range v {
			if err := checkNumbers(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkNumber(s string) error {
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return nil
	}
	exp := strings.TrimLeft(strings.TrimLeft(s[i+1:], "+-"), "0")
	if len(exp) > 3 || len(exp) == 3 && exp > fmt.Sprint(maxExponent) {
		return fmt.Errorf("the exponent of a number is beyond %d", maxExponent)
	}
	return nil
}

// misfit turns a validation error into one fault: each reason with its place.
func misfit(ve *jsonschema.ValidationError, code fault.Code, what string) *fault.Fault {
	var reasons []string
	first := ""
	var visit func(*jsonschema.ValidationError)
	visit = func(e *jsonschema.ValidationError) {
		for _, c := range e.Causes {
			visit(c)
		}
		if len(e.Causes) > 0 || len(reasons) == maxReasons {
			return
		}
		at := pointer(e.InstanceLocation)
		if len(reasons) == 0 {
			first = at
		}
		reasons = append(reasons, "at "+quoted(at)+": "+bound.Shorten(e.ErrorKind.LocalizedString(english), maxReason))
	}
	visit(ve)
	return fault.Newf(code, "%s: %s.", what, strings.Join(reasons, "; ")).At(first)
}

// maxReason bounds one reason, which may quote a value.
const maxReason = 300

func quoted(pointer string) string {
	if pointer == "" {
		return "the top level"
	}
	return bound.Shorten(pointer, maxReason)
}

// pointer returns the JSON pointer (RFC 6901) of a location.
func pointer(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	return b.String()
}

// reason returns the public part of an error: a fault's message, or the text of an error of this package.
func reason(err error) string {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return strings.TrimSuffix(f.Public(), ".")
	}
	return err.Error()
}
