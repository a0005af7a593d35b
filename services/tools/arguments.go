package tools

import (
	"encoding/json"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is the compiled input schema of a tool that is not run by this package. It is
// safe for concurrent use.
type Schema struct{ compiled *jsonschema.Schema }

// CompileSchema compiles the input schema of a tool: a JSON Schema of an object, which
// refers to no other document.
func CompileSchema(raw json.RawMessage) (*Schema, error) {
	s, err := compileSchema(raw)
	if err != nil {
		return nil, fmt.Errorf("compile an input schema: %w", err)
	}
	return &Schema{s}, nil
}

// Check returns nil if the arguments of a call fit the schema, or the fault
// INVALID_INPUT with the JSON pointer of what does not fit and why.
func (s *Schema) Check(arguments json.RawMessage) error {
	_, err := checkArguments(s.compiled, arguments)
	return err
}
