package myagent_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/internal/schematest"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
)

type node = schematest.Node

// TestSchemasAreThoseOfTheTypes: the schemas of what the server sends follow from the Go
// types, so that neither is changed alone.
func TestSchemasAreThoseOfTheTypes(t *testing.T) {
	m := schematest.New(t, unsent)
	m.Special = func(typ reflect.Type, path string) node { return special(m, typ, path) }
	for name, s := range shapes {
		schematest.Compare(t, myagent.Schemas, filepath.Join("schema", name+".json"), frame(t, m, name, s))
	}
	m.Done(t)
}

// frame is the schema of an event that the server sends.
func frame(t *testing.T, m *schematest.Maker, name string, s shape) node {
	t.Helper()
	m.Message = strings.TrimSuffix(name, echo)
	example := schematest.Example(t, myagent.Examples, "examples/"+name+".json")
	props := node{
		"event":     node{"const": m.Message},
		"timestamp": node{"type": "string", "pattern": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$`, "description": "RFC 3339, UTC, milliseconds."},
		"seq": node{"type": "integer", "minimum": 1, "description": "Position of the event in its session: 1, 2, 3, ... " +
			"Absent on frames that were made for one connection. Addition."},
		"event_id":   node{"type": "string", "description": "Opaque; what to come back with. On the frames that have a seq. Addition."},
		"session_id": node{"type": "string", "description": "Absent where the frame is about the connection."},
		"metadata":   m.Object(reflect.TypeOf(s.metadata), "metadata", inner(example, "metadata")),
	}
	required := []string{"event", "metadata", "timestamp"}
	if s.content != nil {
		required = append(required, "content")
		props["content"] = m.Value(reflect.TypeOf(s.content), "content", example["content"])
	}
	if _, ok := example["step_id"]; ok {
		props["step_id"] = node{"type": "string"}
		required = append(required, "step_id")
	}
	if _, ok := example["show_content"]; ok || example == nil {
		props["show_content"] = node{"type": "string", "description": "For people, in the session's language."}
	}
	if shown[m.Message] {
		props["show_content"] = node{"type": "string", "description": "For people, in the session's language. Addition."}
	}
	return node{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:waggle:myagent:" + name, "title": m.Message,
		"description": "To the client.", "type": "object", "properties": props, "required": required, "additionalProperties": false,
	}
}

// shown are the events on which the original's server has a show_content and its
// description has none.
var shown = map[string]bool{myagent.ErrorValidation: true, myagent.ErrorTimeout: true}

// special is the schema of what the Go types do not say: JSON from elsewhere, and tasks,
// which may have members of the client's own.
func special(m *schematest.Maker, t reflect.Type, path string) node {
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return raw(path)
	case reflect.TypeFor[myagent.Task]():
		s := m.Object(t, path, nil)
		s["required"], s["additionalProperties"] = []string{"id", "title"}, true
		return s
	}
	return nil
}

// raw is the schema of a member that is JSON from elsewhere: anything, or an object
// where the protocol says so.
func raw(path string) node {
	if path == "metadata.provided_value" || strings.HasSuffix(path, ".task.context") || strings.HasSuffix(path, "tasks.context") {
		return node{}
	}
	return node{"type": "object"}
}

func inner(example node, name string) node {
	o, _ := example[name].(node)
	return o
}
