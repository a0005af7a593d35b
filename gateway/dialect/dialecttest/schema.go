package dialecttest

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// schemas are compiled JSON Schemas by the name of their file without .json.
type schemas map[string]*jsonschema.Schema

// compile reads every *.json of fsys, at any depth, as a JSON Schema. Formats are
// checked, and a schema that refers to anything outside itself is an error.
func compile(fsys fs.FS) (schemas, error) {
	out := schemas{}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(p) != ".json" {
			return err
		}
		out[strings.TrimSuffix(d.Name(), ".json")], err = compileOne(fsys, p)
		return err
	})
	return out, err
}

func compileOne(fsys fs.FS, p string) (*jsonschema.Schema, error) {
	b, err := fs.ReadFile(fsys, p)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", p, err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	name := "urn:file:" + p
	if err := c.AddResource(name, doc); err != nil {
		return nil, fmt.Errorf("schema %s: %w", p, err)
	}
	s, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", p, err)
	}
	return s, nil
}

// check returns nil if doc is UTF-8, JSON and valid under the named schema.
func (s schemas) check(name string, doc []byte) error {
	sch, ok := s[name]
	if !ok {
		return fmt.Errorf("there is no schema for %q", name)
	}
	if !utf8.Valid(doc) {
		return fmt.Errorf("%s is not UTF-8", name)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return fmt.Errorf("%s is not JSON: %w", name, err)
	}
	if err := sch.Validate(v); err != nil {
		return fmt.Errorf("%s does not fit its schema: %w", name, err)
	}
	return nil
}

// echo marks the schema of what the server sends of a type that goes both ways.
const echo = ".echo"

// frame requires that a frame for the client is of a known type and fits its schema.
func (c *checker) frame(t require.TestingT, frame []byte) {
	kind := c.typeOf(frame)
	require.Contains(t, c.Outbound, kind, "%s", frame)
	if _, both := c.schemas[kind+echo]; both {
		kind += echo
	}
	require.NoError(t, c.schemas.check(kind, frame), "%s", frame)
}

// Checker returns what says whether a document fits the named schema of a dialect.
func Checker(fsys fs.FS) (func(name string, doc []byte) error, error) {
	all, err := compile(fsys)
	return all.check, err
}

// Fits requires that a document fits the named schema of a dialect.
func Fits(t testing.TB, fsys fs.FS, name string, doc []byte) {
	t.Helper()
	var found []string
	require.NoError(t, fs.WalkDir(fsys, ".", func(p string, _ fs.DirEntry, err error) error {
		if path.Base(p) == name+".json" {
			found = append(found, p)
		}
		return err
	}))
	require.Len(t, found, 1, "schemas for %s", name)
	s, err := compileOne(fsys, found[0])
	require.NoError(t, err)
	require.NoError(t, schemas{name: s}.check(name, doc), "%s", doc)
}

var canonical = sync.OnceValues(func() (schemas, error) { return compile(event.Schemas) })

// Event requires that the stored form of an event fits the canonical schemas.
func Event(t testing.TB, raw []byte) {
	t.Helper()
	all, err := canonical()
	require.NoError(t, err)
	require.NoError(t, all.check("event", raw), "%s", raw)
	require.NoError(t, all.check(member(raw, "type"), raw), "%s", raw)
}
