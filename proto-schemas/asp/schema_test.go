package asp_test

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/internal/schematest"
)

type node = schematest.Node

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
		schematest.Compare(t, asp.Schemas, path, schema)
	}
	m := schematest.New(t, unsent)
	for role, types := range roles {
		for _, kind := range types.Out {
			put(role, "out", kind, frame(t, m, role, kind))
		}
		for _, kind := range types.In {
			put(role, "in", kind, inbound(t, role, kind, kind))
		}
		for alias, of := range types.Aliases {
			put(role, "in", alias, inbound(t, role, alias, of))
		}
	}
	m.Done(t)
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

// frame is the schema of a message that the server sends to a role.
func frame(t *testing.T, m *schematest.Maker, role, kind string) node {
	t.Helper()
	content, ok := contents[role][kind]
	if !ok {
		t.Fatalf("there is no content of %s to %s", kind, role)
	}
	m.Message = role + " " + kind
	example := schematest.Example(t, asp.Examples, "examples/"+role+"/out/"+kind+".json")
	inner, _ := example["content"].(node)
	props := node{
		"id":        node{"type": "string", "description": "Of this frame. A frame that comes again has the same."},
		"type":      node{"const": kind},
		"timestamp": node{"type": "string", "pattern": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$`, "description": "RFC 3339, UTC, milliseconds."},
		"content":   m.Object(reflect.TypeOf(content), "content", inner),
	}
	if kind != asp.ChildAccepted && kind != asp.ChildResponse {
		props["requestId"] = node{"type": "string", "description": "The id of the message that this one answers."}
	}
	if role == "client" {
		props["seq"] = node{"type": "integer", "minimum": 1, "description": "Position of the event in what the client is told. " +
			"Absent on frames that report no such event, and on all but the last frame of an event. Addition."}
		at := m.Object(reflect.TypeFor[asp.Watched](), "watched", nil)
		at["description"] = "Where the frame is from, if it is about a run that the client watches: it has no seq then. Addition."
		props["watched"] = at
	}
	return node{
		"description": "To the " + role + ".", "properties": props, "required": []string{"id", "type", "timestamp", "content"}, "additionalProperties": false,
	}
}
