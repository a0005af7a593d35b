package gen

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/bundle"
)

const draft = "https://json-schema.org/draft/2020-12/schema"

// definitions is an unfinished bundle of a dialect: a definition for each message and for each Go type.
type definitions struct {
	comments *comments
	messages *members
	types    map[string]node
	origin   map[string]reflect.Type // of the types
	open     map[string]bool         // the types that others extend: their definitions allow unknown members

	closed bool // types refuse unknown members

	raw node // the schema of raw JSON

	// Rules that Go types cannot express; each may be nil.
	value  func(outer reflect.Type, f reflect.StructField) node // the schema of a member, nil = the schema of the Go type
	flat   func(outer, embedded reflect.Type) bool              // whether the embedded struct's members follow separate rules there
	finish func(t reflect.Type, s node, own *members)           // final changes to a type
}

func newDefinitions(c *comments) *definitions {
	return &definitions{
		comments: c, messages: newMembers(), types: map[string]node{}, origin: map[string]reflect.Type{}, open: map[string]bool{},
		raw: node{},
	}
}

// to refers to a definition.
func to(name string) node { return node{"$ref": "#/$defs/" + name} }

// anyOf accepts what any of the definitions accepts.
func anyOf(description string, names []string) node {
	var refs []node
	for _, name := range names {
		refs = append(refs, to(name))
	}
	return node{"description": description, "anyOf": refs}
}

// encode returns the bundle of a dialect. A valid frame matches one of the definitions that the root names.
func (d *definitions) encode(dialect, title string, root []string) ([]byte, error) {
	all := newMembers()
	for _, name := range d.messages.names {
		all.set(name, d.messages.of[name])
	}
	var types []string
	for name := range d.types {
		types = append(types, name)
	}
	slices.Sort(types)
	for _, name := range types {
		if all.of[name] != nil {
			return nil, fmt.Errorf("bundle of %s: %s is a message and a Go type", dialect, name)
		}
		all.set(name, d.types[name])
	}
	s := anyOf("A frame. Pick #/$defs/NAME for a single message.", root)
	s["$schema"], s["$id"], s["title"], s["$defs"] = draft, bundle.ID(dialect), title, all
	b, err := encode(s)
	if err != nil {
		return nil, fmt.Errorf("bundle of %s: %w", dialect, err)
	}
	return b, nil
}
