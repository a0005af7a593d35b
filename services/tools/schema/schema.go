// Package schema compiles the JSON Schemas of tools and checks arguments and results against them. Schemas are untrusted:
// compiling reads no other document, and both compiling and checking have a bound. Schemas of real tools break the rules of
// their draft: what cannot be compiled is not checked, and the rest is.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	compiled  *jsonschema.Schema
	plan      *plan
	unchecked []string
}

// Compile compiles a JSON Schema of at most 64 KiB. A missing one, null and true accept every object. Keywords that break
// the rules of the schema's draft, patterns that Go cannot compile and references to other documents are not checked; see
// Unchecked. The error says why a document is not a schema, or why its checks would have no bound.
func Compile(raw json.RawMessage) (*Schema, error) {
	doc, err := document(raw)
	if err != nil {
		return nil, err
	}
	s := surveyed(doc)
	if err := s.bounded(); err != nil {
		return nil, err
	}
	allowNull(s)
	m := &mender{root: doc, patterns: newPatterns(), touched: make(map[uintptr]bool)}
	m.dropDynamic(s)
	compiled, err := strict(doc, m.patterns)
	if err != nil {
		compiled = m.mend()
	}
	p, err := planned(compiled)
	if err != nil {
		return nil, err
	}
	return &Schema{compiled, p, m.unchecked}, nil
}

// document decodes a schema.
func document(raw json.RawMessage) (any, error) {
	if b := bytes.TrimSpace(raw); len(b) == 0 || string(b) == "null" || string(b) == "true" {
		return map[string]any{"type": "object"}, nil
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("the schema is larger than %d bytes", maxSchema)
	}
	doc, err := decode(raw, ofSchemas)
	if err != nil {
		return nil, err
	}
	if !isObject(doc) {
		return nil, errors.New("the schema is not a JSON object")
	}
	return doc, nil
}

// Unchecked returns what is not checked: JSON pointers of keywords with the reasons, of which each is one line.
func (s *Schema) Unchecked() []string { return s.unchecked }

// Arguments returns the arguments of a call as an object that fits the schema, or INVALID_INPUT with the JSON pointer and
// the reason of each misfit. Missing arguments become an empty object.
func (s *Schema) Arguments(raw json.RawMessage) (map[string]any, error) {
	if b := bytes.TrimSpace(raw); len(b) == 0 || string(b) == "null" {
		raw = json.RawMessage("{}")
	}
	v, err := decode(raw, ofArguments)
	if err != nil {
		return nil, fault.Newf(fault.ToolBadInput, "The arguments are invalid: %s.", reason(err)).Wrap(err)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, fault.Newf(fault.ToolBadInput, "The arguments must be a JSON object.")
	}
	if !s.plan.affordable(v) {
		return nil, fault.Newf(fault.ToolBadInput, "The arguments take too long to check against the tool's schema. Send fewer values, or values that are nested less.")
	}
	if f := s.fits(v, fault.ToolBadInput, "The arguments do not match the tool's schema"); f != nil {
		return nil, f
	}
	return object, nil
}

// Fits returns why the arguments of a call do not fit a schema, as Arguments says it; nil: they do. Nothing fits a document that is
// not a schema.
func Fits(schema, arguments json.RawMessage) *fault.Fault {
	s, err := Compile(schema)
	if err != nil {
		return fault.Newf(fault.ToolBadInput, "The schema of the tool's arguments is invalid. Tell the operator of the tool.").Wrap(err)
	}
	_, err = s.Arguments(arguments)
	return fault.From(err, "")
}

// CheckResult returns nil if a result fits the schema, or INVALID_OUTPUT with the JSON
// pointer and the reason of each misfit.
func (s *Schema) CheckResult(raw json.RawMessage) error {
	v, err := decode(raw, ofResults)
	if err != nil {
		return fault.Newf(fault.BadOutput, "The tool's result is invalid: %s.", reason(err)).Wrap(err)
	}
	if !s.plan.affordable(v) {
		return fault.Newf(fault.BadOutput, "The tool's result takes too long to check against its schema. Ask for less at a time.")
	}
	if f := s.fits(v, fault.BadOutput, "The tool's result does not match its schema"); f != nil {
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
