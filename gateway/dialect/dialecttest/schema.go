package dialecttest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/bundle"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// schemas are the compiled definitions of messages, by the name of the message.
type schemas map[string]*jsonschema.Schema

// compile compiles the definitions of the messages in groups of a bundle: in, out. A name
// does not repeat its group. Formats are checked, and a schema that refers to anything
// outside the bundle is an error.
func compile(schema string, groups ...string) (schemas, error) {
	out := schemas{}
	for _, group := range groups {
		names, err := bundle.Messages(schema, group)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if out[strings.TrimPrefix(name, group+".")], err = definition(schema, "#/$defs/"+name); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// compilers are those of the bundles, which remember what they have compiled.
var compilers = struct {
	sync.Mutex
	of map[string]*jsonschema.Compiler
}{of: map[string]*jsonschema.Compiler{}}

// resource is the address of a bundle in its own compiler.
const resource = "urn:bundle"

// definition compiles what a fragment of a bundle says; # is its root.
func definition(schema, fragment string) (*jsonschema.Schema, error) {
	compilers.Lock()
	defer compilers.Unlock()
	c := compilers.of[schema]
	if c == nil {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
		if err != nil {
			return nil, fmt.Errorf("bundle: %w", err)
		}
		c = jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.AssertFormat()
		c.UseLoader(jsonschema.SchemeURLLoader{})
		if err := c.AddResource(resource, doc); err != nil {
			return nil, fmt.Errorf("bundle: %w", err)
		}
		compilers.of[schema] = c
	}
	s, err := c.Compile(resource + fragment)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", fragment, err)
	}
	return s, nil
}

// check returns nil if doc is UTF-8, JSON and valid under the named schema.
func (s schemas) check(name string, doc []byte) error {
	if s[name] == nil {
		return fmt.Errorf("no schema for %q", name)
	}
	v, err := read(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return s.fits(name, v)
}

// read parses a document, which has to be UTF-8.
func read(doc []byte) (any, error) {
	if !utf8.Valid(doc) {
		return nil, errors.New("not UTF-8")
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return v, nil
}

// fits returns nil if a document that read has parsed is valid under the named schema.
func (s schemas) fits(name string, doc any) error {
	sch, ok := s[name]
	if !ok {
		return fmt.Errorf("no schema for %q", name)
	}
	if err := sch.Validate(doc); err != nil {
		return fmt.Errorf("%s does not fit its schema: %w", name, err)
	}
	return nil
}

// Checker returns what says whether a document fits the definition of a message in one of
// the groups of a bundle.
func Checker(schema string, groups ...string) (func(name string, doc []byte) error, error) {
	all, err := compile(schema, groups...)
	return all.check, err
}

// Fits requires that a message fits its definition in a bundle, and the bundle's root.
func Fits(t testing.TB, schema, name string, doc []byte) {
	t.Helper()
	Is(t, schema, name, doc)
	inBundle(t, schema, doc)
}

// Is requires that a document of any kind fits the named definition of a bundle.
func Is(t testing.TB, schema, name string, doc []byte) {
	t.Helper()
	s, err := definition(schema, "#/$defs/"+name)
	require.NoError(t, err)
	require.NoError(t, schemas{name: s}.check(name, doc), "%s", doc)
}

// inBundle requires that a document fits the root of a bundle, which takes every message.
func inBundle(t require.TestingT, schema string, doc []byte) {
	s, err := definition(schema, "#")
	require.NoError(t, err)
	require.NoError(t, schemas{"root": s}.check("root", doc), "%s", doc)
}

// anyEvent and bundleRoot are the names of the canonical schemas that fit every event.
const (
	anyEvent   = "event"
	bundleRoot = "#"
)

// canonical compiles the canonical schemas: of each type, of any event, and of the root.
var canonical = sync.OnceValues(func() (schemas, error) {
	all, err := compile(event.Schema, "")
	for name, fragment := range map[string]string{anyEvent: "#/$defs/event", bundleRoot: "#"} {
		if err == nil {
			all[name], err = definition(event.Schema, fragment)
		}
	}
	return all, err
})

// Event requires that the stored form of an event fits the canonical schemas.
func Event(t testing.TB, raw []byte) {
	t.Helper()
	all, err := canonical()
	require.NoError(t, err)
	v, err := read(raw)
	require.NoError(t, err, "%s", raw)
	for _, name := range []string{anyEvent, TextAt(v, "type"), bundleRoot} {
		if err := all.fits(name, v); err != nil {
			require.NoError(t, err, "%s", raw)
		}
	}
}

// reading is all that the suite looks at in a frame.
type reading struct {
	kind    string
	id      string
	session string
	eventID string
	seq     uint64 // its own
	watched uint64 // that of a watched log, where a socket shows another log besides
	place   uint64 // its position in a dialect of teams
	fits    bool   // its schema
}

// at returns what a parsed document has at a path of members, nil if it has nothing there.
func at(v any, path ...string) any {
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// TextAt returns the text at a path of members, empty without one.
func TextAt(v any, path ...string) string {
	s, _ := at(v, path...).(string)
	return s
}
