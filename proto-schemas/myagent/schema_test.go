package myagent_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/myagent"
)

var update = flag.Bool("update", false, "rewrite the schemas of what the server sends")

// node is a JSON Schema, or an example.
type node = map[string]any

// maker makes the schema of one event from its Go types, their comments and the
// original's example.
type maker struct {
	event    string
	comments map[string]string // Struct.Field -> its comment
	unused   map[string]bool   // members of unsent that no schema has
}

// TestSchemasAreThoseOfTheTypes: the schemas of what the server sends follow from the Go
// types, so that neither is changed alone.
func TestSchemasAreThoseOfTheTypes(t *testing.T) {
	m := maker{comments: comments(t), unused: map[string]bool{}}
	for path := range unsent {
		m.unused[path] = true
	}
	for name, s := range shapes {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(m.frame(t, name, s)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("schema", name+".json")
		if *update {
			if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if have, err := myagent.Schemas.ReadFile(path); err != nil || !bytes.Equal(have, b.Bytes()) {
			t.Errorf("%s is stale (%v); run go test -update", path, err)
		}
	}
	for path := range m.unused {
		t.Errorf("unsent has %s, which is in no example or is sent", path)
	}
}

func (m *maker) frame(t *testing.T, name string, s shape) node {
	t.Helper()
	m.event = strings.TrimSuffix(name, echo)
	example := node(nil)
	if raw, err := myagent.Examples.ReadFile("examples/" + name + ".json"); err == nil {
		if err := json.Unmarshal(raw, &example); err != nil {
			t.Fatal(err)
		}
	}
	props := node{
		"event":     node{"const": m.event},
		"timestamp": node{"type": "string", "pattern": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$`, "description": "RFC 3339, UTC, milliseconds."},
		"seq": node{"type": "integer", "minimum": 1, "description": "Position of the event in its session: 1, 2, 3, ... " +
			"Absent on frames that were made for one connection. Addition."},
		"event_id":   node{"type": "string", "description": "Opaque; what to come back with. On the frames that have a seq. Addition."},
		"session_id": node{"type": "string", "description": "Absent where the frame is about the connection."},
		"metadata":   m.object(reflect.TypeOf(s.metadata), "metadata", inner(example, "metadata")),
	}
	required := []string{"event", "metadata", "timestamp"}
	if s.content != nil {
		required = append(required, "content")
		props["content"] = m.value(reflect.TypeOf(s.content), "content", example["content"])
	}
	if _, ok := example["step_id"]; ok {
		props["step_id"] = node{"type": "string"}
		required = append(required, "step_id")
	}
	if _, ok := example["show_content"]; ok || example == nil {
		props["show_content"] = node{"type": "string", "description": "For people, in the session's language."}
	}
	if shown[m.event] {
		props["show_content"] = node{"type": "string", "description": "For people, in the session's language. Addition."}
	}
	return node{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:waggle:myagent:" + name, "title": m.event,
		"description": "To the client.", "type": "object", "properties": props, "required": required, "additionalProperties": false,
	}
}

// shown are the events on which the original's server has a show_content and its
// description has none.
var shown = map[string]bool{myagent.ErrorValidation: true, myagent.ErrorTimeout: true}

func (m *maker) object(t reflect.Type, path string, example node) node {
	props := node{}
	required := []string{}
	for _, f := range flat(t) {
		name, omit := jsonName(f.StructField)
		props[name] = m.value(f.Type, path+"."+name, example[name])
		if text := m.comments[f.in+"."+f.Name]; text != "" {
			props[name] = with(props[name], text)
		}
		if _, there := example[name]; !omit && (example == nil || there) {
			required = append(required, name)
		}
	}
	for name, v := range example {
		if props[name] == nil {
			props[name] = with(kind(v), "Never sent by this version: "+unsent[m.event+" "+path+"."+name]+".")
			delete(m.unused, m.event+" "+path+"."+name)
		}
	}
	return node{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}

func (m *maker) value(t reflect.Type, path string, example any) node {
	switch {
	case t.Kind() == reflect.Pointer:
		return m.value(t.Elem(), path, example)
	case t == reflect.TypeFor[json.RawMessage]():
		return raw(path)
	case t == reflect.TypeFor[myagent.Task]():
		s := m.object(t, path, nil)
		s["required"], s["additionalProperties"] = []string{"id", "title"}, true
		return s
	}
	switch t.Kind() {
	case reflect.Struct:
		o, _ := example.(node)
		return m.object(t, path, o)
	case reflect.Slice:
		var first any
		if list, ok := example.([]any); ok && len(list) > 0 {
			first = list[0]
		}
		return node{"type": "array", "items": m.value(t.Elem(), path, first)}
	case reflect.Bool:
		return node{"type": "boolean"}
	case reflect.String:
		return node{"type": "string"}
	case reflect.Float64:
		return node{"type": "number"}
	}
	return node{"type": "integer"}
}

// raw is the schema of a member that is JSON from elsewhere: anything, or an object
// where the protocol says so.
func raw(path string) node {
	if path == "metadata.provided_value" || strings.HasSuffix(path, ".task.context") || strings.HasSuffix(path, "tasks.context") {
		return node{}
	}
	return node{"type": "object"}
}

// kind is the schema of an example's value.
func kind(v any) node {
	switch v.(type) {
	case string:
		return node{"type": "string"}
	case float64:
		return node{"type": "number"}
	case []any:
		return node{"type": "array"}
	}
	return node{"type": "object"}
}

func with(s any, description string) node {
	n, _ := s.(node)
	n["description"] = description
	return n
}

func inner(example node, name string) node {
	o, _ := example[name].(node)
	return o
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
					for _, id := range f.Names {
						out[spec.Name.Name+"."+id.Name] = strings.TrimSpace(f.Comment.Text())
					}
				}
			}
			return true
		})
	}
	return out
}
