package asp_test

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

	"github.com/waggle-dev/waggle/proto-schemas/asp"
)

var update = flag.Bool("update", false, "rewrite the schemas")

// node is a JSON Schema, or an example.
type node = map[string]any

var roles = map[string]asp.Types{"client": asp.Client, "agent": asp.Agent, "service": asp.Service}

// TestSchemas: those of what the server sends follow from the Go types, and those of
// what peers send from the table of their members, so that neither is changed alone.
func TestSchemas(t *testing.T) {
	known := map[string]bool{}
	put := func(role, dir, kind string, schema node) {
		path := filepath.Join("schema", role, dir, kind+".json")
		known[path] = true
		schema["$schema"], schema["title"], schema["type"] = "https://json-schema.org/draft/2020-12/schema", kind, "object"
		schema["$id"] = "urn:waggle:asp:" + role + ":" + dir + ":" + kind
		compare(t, path, schema)
	}
	m := maker{comments: comments(t), unused: map[string]bool{}}
	for path := range unsent {
		m.unused[path] = true
	}
	for role, types := range roles {
		for _, kind := range types.Out {
			put(role, "out", kind, m.frame(t, role, kind))
		}
		for _, kind := range types.In {
			put(role, "in", kind, inbound(t, role, kind, kind))
		}
		for alias, of := range types.Aliases {
			put(role, "in", alias, inbound(t, role, alias, of))
		}
	}
	for path := range m.unused {
		t.Errorf("unsent has %s, which is in no example or is sent", path)
	}
	have, err := filepath.Glob("schema/*/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range have {
		if !known[path] {
			t.Errorf("%s is the schema of no message", path)
		}
	}
}

func compare(t *testing.T, path string, schema node) {
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
	if have, err := asp.Schemas.ReadFile(path); err != nil || !bytes.Equal(have, b.Bytes()) {
		t.Errorf("%s is stale (%v); run go test -update", path, err)
	}
}

// maker makes the schemas of what the server sends from the Go types, their comments
// and the examples of the description.
type maker struct {
	kind     string
	comments map[string]string // Struct.Field -> its comment
	unused   map[string]bool   // members of unsent that no schema has
}

func (m *maker) frame(t *testing.T, role, kind string) node {
	t.Helper()
	content, ok := contents[role][kind]
	if !ok {
		t.Fatalf("there is no content of %s to %s", kind, role)
	}
	m.kind = role + " " + kind
	example := node(nil)
	if raw, err := asp.Examples.ReadFile("examples/" + role + "/out/" + kind + ".json"); err == nil {
		if err := json.Unmarshal(raw, &example); err != nil {
			t.Fatal(err)
		}
	}
	inner, _ := example["content"].(node)
	props := node{
		"id":        node{"type": "string", "description": "Of this frame. A frame that comes again has the same."},
		"type":      node{"const": kind},
		"timestamp": node{"type": "string", "pattern": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$`, "description": "RFC 3339, UTC, milliseconds."},
		"content":   m.object(reflect.TypeOf(content), "content", inner),
	}
	if kind != asp.ChildAccepted && kind != asp.ChildResponse {
		props["requestId"] = node{"type": "string", "description": "The id of the message that this one answers."}
	}
	if role == "client" {
		props["seq"] = node{"type": "integer", "minimum": 1, "description": "Position of the event in what the client is told. " +
			"Absent on frames that report no such event, and on all but the last frame of an event. Addition."}
		at := m.object(reflect.TypeFor[asp.Watched](), "watched", nil)
		at["description"] = "Where the frame is from, if it is about a run that the client watches: it has no seq then. Addition."
		props["watched"] = at
	}
	return node{
		"description": "To the " + role + ".", "properties": props, "required": []string{"id", "type", "timestamp", "content"}, "additionalProperties": false,
	}
}

func (m *maker) object(t reflect.Type, path string, example node) node {
	props := node{}
	required := []string{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := m.value(f.Type, path+"."+name, example[name])
		if text := m.comments[t.Name()+"."+f.Name]; text != "" {
			p["description"] = text
		}
		props[name] = p
		if _, there := example[name]; options == "" && (example == nil || there) {
			required = append(required, name)
		}
	}
	for name, v := range example {
		if props[name] == nil {
			props[name] = node{"type": kindOf(v), "description": "Never sent by this version: " + unsent[m.kind+" "+path+"."+name] + "."}
			delete(m.unused, m.kind+" "+path+"."+name)
			if unsent[m.kind+" "+path+"."+name] == "" {
				panic("no reason is given why this is never sent: " + m.kind + " " + path + "." + name)
			}
		}
	}
	return node{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}

func (m *maker) value(t reflect.Type, path string, example any) node {
	if t == reflect.TypeFor[json.RawMessage]() {
		return node{}
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
	}
	return node{"type": "integer"}
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
