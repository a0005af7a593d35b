package bundle_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/bundle"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/orbit"
	"github.com/waggle-dev/waggle/proto-schemas/team"
)

// document is the part of a bundle that these tests check.
type document struct {
	Schema string                    `json:"$schema"`
	ID     string                    `json:"$id"`
	Defs   map[string]map[string]any `json:"$defs"`
}

func read(t *testing.T, name, schema string) document {
	t.Helper()
	var d document
	if err := json.Unmarshal([]byte(schema), &d); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

// TestIDs: a bundle has the id in the list of bundles, and a unique name.
func TestIDs(t *testing.T) {
	var names []string
	for _, b := range bundle.All() {
		d := read(t, b.Name, b.JSON())
		if d.ID != b.ID || d.Schema != "https://json-schema.org/draft/2020-12/schema" || !strings.HasPrefix(b.ID, "urn:waggle:schema:"+b.Name+":") {
			t.Errorf("%s: the schema is %s, of %s", b.Name, d.ID, d.Schema)
		}
		names = append(names, b.Name)
	}
	if want := []string{"agui", "asp", "event", "myagent", "orbit", "team"}; !slices.Equal(names, want) {
		t.Errorf("bundles %q", names)
	}
}

// TestPackedBundlesAreThoseOfTheDialects: each unpacks to the schema of its package, that of the API included.
func TestPackedBundlesAreThoseOfTheDialects(t *testing.T) {
	want := map[string]string{
		"agui": agui.Schema, "asp": asp.Schema, "event": event.Schema, "myagent": myagent.Schema, "orbit": orbit.Schema, "team": team.Schema,
	}
	for _, b := range bundle.All() {
		if b.JSON() != want[b.Name] {
			t.Errorf("%s: the packed bundle is another one", b.Name)
		}
	}
	if bundle.API() != api.Schema {
		t.Error("api: the packed bundle is another one")
	}
}

// TestEveryReferenceIsDefined: within the bundle, and every definition but those of frames is referred to.
func TestEveryReferenceIsDefined(t *testing.T) {
	for _, b := range bundle.All() {
		d, refs := read(t, b.Name, b.JSON()), map[string]bool{}
		var whole any
		if err := json.Unmarshal([]byte(b.JSON()), &whole); err != nil {
			t.Fatal(err)
		}
		collect(whole, refs)
		for ref := range refs {
			name, ok := strings.CutPrefix(ref, "#/$defs/")
			if _, defined := d.Defs[name]; !ok || !defined {
				t.Errorf("%s: %s is not defined", b.Name, ref)
			}
		}
		for name := range d.Defs {
			if !refs["#/$defs/"+name] && name != "health" {
				t.Errorf("%s: nothing refers to %s", b.Name, name)
			}
		}
	}
}

func collect(v any, refs map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			refs[ref] = true
		}
		for _, inner := range v {
			collect(inner, refs)
		}
	case []any:
		for _, inner := range v {
			collect(inner, refs)
		}
	}
}

// TestSharedTypesAppearOnce: a closed object is a definition, so that several messages share one text. Only frames
// are closed in place.
func TestSharedTypesAppearOnce(t *testing.T) {
	for _, b := range bundle.All() {
		for name, s := range read(t, b.Name, b.JSON()).Defs {
			if spelled(s["properties"]) {
				t.Errorf("%s: %s spells out an object; give it a definition", b.Name, name)
			}
		}
	}
}

// spelled reports whether a schema spells out a closed object.
func spelled(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["additionalProperties"]; ok {
			return true
		}
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), spelled)
	case []any:
		return slices.ContainsFunc(v, spelled)
	}
	return false
}

// TestEveryMessageHasItsDefinition: under its name, with its type; the frames include no others.
func TestEveryMessageHasItsDefinition(t *testing.T) {
	echo := func(kind string) string {
		if slices.Contains(myagent.Inbound, kind) {
			return kind + ".echo"
		}
		return kind
	}
	own := func(kind string) string { return kind }
	expect(t, "orbit", orbit.Schema, "in", orbit.Inbound, own)
	expect(t, "orbit", orbit.Schema, "out", orbit.Outbound, own)
	expect(t, "myagent", myagent.Schema, "in", myagent.Inbound, own)
	expect(t, "myagent", myagent.Schema, "out", myagent.Outbound, echo)
	expect(t, "team", team.Schema, "in", team.Inbound, own)
	expect(t, "team", team.Schema, "out", append(slices.Clone(team.Outbound), team.AssistantChunk, team.EnvelopeSchema, team.StreamEventSchema), own)
	for role, types := range map[string]asp.Types{"client": asp.Client, "agent": asp.Agent, "service": asp.Service} {
		in := append(slices.Clone(types.In), slices.Collect(maps.Keys(types.Aliases))...)
		expect(t, "asp", asp.Schema, role+".in", in, func(kind string) string { return role + ".in." + kind })
		expect(t, "asp", asp.Schema, role+".out", types.Out, func(kind string) string { return role + ".out." + kind })
	}
	var types []string
	for _, info := range event.Catalogue {
		types = append(types, string(info.Type))
	}
	expect(t, "event", event.Schema, "", types, own)
}

func expect(t *testing.T, name, schema, group string, kinds []string, of func(string) string) {
	t.Helper()
	have, err := bundle.Messages(schema, group)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	d := read(t, name, schema)
	for _, kind := range kinds {
		want = append(want, of(kind))
		props, _ := d.Defs[of(kind)]["properties"].(map[string]any)
		member := "type"
		if name == "myagent" {
			member = "event"
		}
		if is, _ := props[member].(map[string]any); is["const"] != kind && kind != team.EnvelopeSchema && kind != team.StreamEventSchema {
			t.Errorf("%s: the definition of %s is of %v", name, kind, is["const"])
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(have, want) {
		t.Errorf("%s: definitions of %s %q\nmessages %q", name, group, have, want)
	}
}

// TestMessages: a group without references is an error, a missing one is empty.
func TestMessages(t *testing.T) {
	if names, err := bundle.Messages(orbit.Schema, "nothing"); err != nil || len(names) != 0 {
		t.Errorf("%q, %v", names, err)
	}
	for _, broken := range []string{`{`, `{"anyOf":[{"$ref":"#/$defs/none"}],"$defs":{}}`} {
		if names, err := bundle.Messages(broken, ""); err == nil {
			t.Errorf("%s gives %q", broken, names)
		}
	}
}
