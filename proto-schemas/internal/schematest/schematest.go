// Package schematest makes JSON Schemas of what a server sends from the Go types, their
// comments and the examples of a protocol's description, and holds schemas that are
// checked in to what follows from the code. It is for tests only.
package schematest

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the schemas")

// Node is a JSON Schema, or an example.
type Node = map[string]any

// Compare checks that the file holds the schema, or writes it with -update. The path is
// the same in the file system and from the folder of the test.
func Compare(t *testing.T, files fs.ReadFileFS, path string, schema Node) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(schema); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have, err := files.ReadFile(path); err != nil || !bytes.Equal(have, b.Bytes()) {
		t.Errorf("%s is stale (%v); run go test -update", path, err)
	}
}

// Example reads an example of the protocol's description, nil if there is none.
func Example(t *testing.T, files fs.ReadFileFS, path string) Node {
	t.Helper()
	raw, err := files.ReadFile(path)
	if err != nil {
		return nil
	}
	var example Node
	if err := json.Unmarshal(raw, &example); err != nil {
		t.Fatal(err)
	}
	return example
}

// Maker makes the schemas of messages.
type Maker struct {
	// Message is the name of the message whose schema is being made, as Unsent has it.
	Message string
	// Special returns the schema of a value whose Go type does not say it, else nil.
	Special func(t reflect.Type, path string) Node

	comments map[string]string // Struct.Field -> its comment
	unsent   map[string]string // <message> <path> -> why
	unused   map[string]bool   // members of unsent that no schema has
}

// New returns a maker for the package whose sources are in the folder of the test. unsent
// are the members of examples that are never sent, <message> <path>, with the reason.
func New(t *testing.T, unsent map[string]string) *Maker {
	t.Helper()
	m := &Maker{comments: comments(t), unsent: unsent, unused: map[string]bool{}}
	for path := range unsent {
		m.unused[path] = true
	}
	return m
}

// Done checks that all that is never sent was in some example.
func (m *Maker) Done(t *testing.T) {
	t.Helper()
	for path := range m.unused {
		t.Errorf("unsent has %s, which is in no example or is sent", path)
	}
}

// Object returns the schema of a struct at a path of the message. With an example those of
// its members are required that the type always has and the example shows, without one all
// that the type always has. What only the example has is allowed, with the reason why it is
// never sent.
func (m *Maker) Object(t reflect.Type, path string, example Node) Node {
	props := Node{}
	required := []string{}
	for _, f := range flat(t) {
		name, omit := jsonName(f.StructField)
		p := m.Value(f.Type, path+"."+name, example[name])
		if text := m.comments[f.in+"."+f.Name]; text != "" {
			p["description"] = text
		}
		props[name] = p
		if _, there := example[name]; !omit && (example == nil || there) {
			required = append(required, name)
		}
	}
	for name, v := range example {
		if props[name] != nil {
			continue
		}
		member := m.Message + " " + path + "." + name
		if m.unsent[member] == "" {
			panic("no reason is given why this is never sent: " + member)
		}
		props[name] = Node{"type": kindOf(v), "description": "Never sent by this version: " + m.unsent[member] + "."}
		delete(m.unused, member)
	}
	return Node{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}

// Value returns the schema of a value of a type at a path of the message.
func (m *Maker) Value(t reflect.Type, path string, example any) Node {
	if m.Special != nil {
		if s := m.Special(t, path); s != nil {
			return s
		}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return m.Value(t.Elem(), path, example)
	case reflect.Struct:
		o, _ := example.(Node)
		return m.Object(t, path, o)
	case reflect.Slice:
		if t == reflect.TypeFor[json.RawMessage]() {
			return Node{}
		}
		var first any
		if list, ok := example.([]any); ok && len(list) > 0 {
			first = list[0]
		}
		return Node{"type": "array", "items": m.Value(t.Elem(), path, first)}
	case reflect.Bool:
		return Node{"type": "boolean"}
	case reflect.String:
		return Node{"type": "string"}
	case reflect.Float64:
		return Node{"type": "number"}
	}
	return Node{"type": "integer"}
}

// kindOf is the type of an example's value.
func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case float64:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// member is a field with the name of the struct that it is in.
type member struct {
	reflect.StructField
	in string
}

// flat returns the members that a struct has in JSON, those of embedded ones included.
func flat(t reflect.Type) []member {
	var out []member
	for f := range t.Fields() {
		if name, _ := jsonName(f); f.Anonymous {
			out = append(out, flat(f.Type)...)
		} else if name != "-" {
			out = append(out, member{f, t.Name()})
		}
	}
	return out
}

func jsonName(f reflect.StructField) (name string, omit bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, strings.Contains(options, "omit")
}

// comments reads what the sources say of the fields of structs.
func comments(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, name := range f.Names {
						out[spec.Name.Name+"."+name.Name] = strings.TrimSpace(f.Comment.Text())
					}
				}
			}
			return true
		})
	}
	return out
}
