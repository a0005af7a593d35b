package dialecttest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Messages are the messages of one direction of a protocol that has a suite of its own.
type Messages struct {
	schema string
	*checker
}

// Reading is what a frame says of itself.
type Reading struct {
	Kind, ID string
	Seq      uint64 // its own, or that of the watched log
}

// MessagesOf compiles the schemas of the messages in a group of a bundle. The types are those that frames may have.
func MessagesOf(t testing.TB, schema, group string, types []string) *Messages {
	t.Helper()
	all, err := compile(schema, group)
	require.NoError(t, err)
	return &Messages{schema: schema, checker: &checker{Suite: Suite{Kind: "type", Outbound: types}, schemas: all, readings: newReadings()}}
}

// Messages returns the messages of the dialect, for tests of its own.
func (s Suite) Messages(t testing.TB) *Messages {
	t.Helper()
	return &Messages{schema: s.Schema, checker: load(t, s)}
}

// Names returns the types that have a schema.
func (m *Messages) Names() (out []string) {
	for name := range m.schemas {
		out = append(out, name)
	}
	return out
}

// Check returns why a document does not fit the schema of its type.
func (m *Messages) Check(kind string, doc []byte) error { return m.schemas.check(kind, doc) }

// Frame requires that a frame is of a known type and fits its schema.
func (m *Messages) Frame(t require.TestingT, frame []byte) Reading { return said(m.frame(t, frame)) }

// Frames requires the same of all frames of an event.
func (m *Messages) Frames(t require.TestingT, frames [][]byte) (out []Reading) {
	for _, f := range frames {
		out = append(out, m.Frame(t, f))
	}
	return out
}

// Read returns what a frame says that may not fit its schema, and requires that its type is known.
func (m *Messages) Read(t require.TestingT, frame []byte) Reading {
	r, err := m.read(frame)
	require.NoError(t, err, "%q", frame)
	require.Contains(t, m.Outbound, r.kind)
	return said(r)
}

func said(r reading) Reading { return Reading{Kind: r.kind, ID: r.id, Seq: r.seq + r.watched} }

// Example requires that an example of the protocol's description fits its schema and the whole bundle. Of one that the server
// sends, all members but those unsaid are in one of the frames.
func (m *Messages) Example(t *testing.T, kind string, raw []byte, unsaid []string, frames []any) {
	t.Helper()
	require.NoError(t, m.Check(kind, raw))
	inBundle(t, m.schema, raw)
	if frames != nil {
		(&checker{Suite: Suite{Unsaid: unsaid}}).shape(t, kind, kind, parse(t, raw), frames)
	}
}

// Hostile returns documents that no friendly client sends: of the types, and the accepted ones with their members changed.
func Hostile(t testing.TB, types, accepted []string) []string {
	t.Helper()
	types = slices.Sorted(slices.Values(types))
	return thin(hostileTo(t, "type", types, accepted), enough/2)
}

// Seeds returns hostile documents for a fuzzer to begin with.
func Seeds(types []string) (out []string) {
	for i, doc := range hostileDocuments("type", types) {
		if i%seedStride == 0 {
			out = append(out, doc)
		}
	}
	return out
}

// Pure checks that a package is a pure translation.
func Pure(t *testing.T, path string) {
	t.Helper()
	(&checker{Suite: Suite{Package: path}}).pure(t)
}
