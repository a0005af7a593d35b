// Package bundle holds the JSON Schemas (2020-12) of the contract: one bundle for each
// dialect and one for the canonical events.
package bundle

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/orbit"
	"github.com/waggle-dev/waggle/proto-schemas/team"
)

// Bundle is the JSON Schema of all messages of a dialect. A valid frame matches its root, and the definition of its
// message: #/$defs/NAME.
type Bundle struct {
	Name string // of the dialect
	ID   string // the schema's $id
	JSON string
}

// All returns the bundles, sorted by name.
func All() []Bundle {
	return []Bundle{
		{"agui", ID("agui"), agui.Schema},
		{"asp", ID("asp"), asp.Schema},
		{"event", ID("event"), event.Schema},
		{"myagent", ID("myagent"), myagent.Schema},
		{"orbit", ID("orbit"), orbit.Schema},
		{"team", ID("team"), team.Schema},
	}
}

// ID returns the $id of a dialect's bundle. The number grows when a document that was valid becomes invalid.
func ID(dialect string) string { return "urn:waggle:schema:" + dialect + ":1" }

// Messages returns the names of the definitions that a group of a bundle accepts, such as in, out and client.in; the
// empty name selects the root.
func Messages(schema, group string) ([]string, error) {
	type anyOf struct {
		AnyOf []struct {
			Ref string `json:"$ref"`
		} `json:"anyOf"`
	}
	var doc struct {
		anyOf
		Defs map[string]anyOf `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(schema), &doc); err != nil {
		return nil, fmt.Errorf("read a bundle: %w", err)
	}
	of := doc.anyOf
	if group != "" {
		of = doc.Defs[group]
	}
	var names []string
	for _, a := range of.AnyOf {
		name := strings.TrimPrefix(a.Ref, "#/$defs/")
		if _, ok := doc.Defs[name]; !ok {
			return nil, fmt.Errorf("read a bundle: %s has no definition", a.Ref)
		}
		names = append(names, name)
	}
	return names, nil
}
