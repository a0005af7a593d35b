// Package dialecttest is the conformance suite of dialects. Every dialect runs it
// with three lines of wiring; package dialect states its demands.
//
// Golden transcripts are txtar files:
//
//	what the transcript shows, for people
//	-- query --       the query of the socket's URL (optional)
//	-- client --      frames of the client, one a line
//	-- intents --     what they mean: intents, or a fault, for each
//	-- replies --     the frames that tell the client of the faults
//	-- bus --         canonical events, one a line; !starting, !ready and !truncated N
//	                  stand for the frames of the gateway between them
//	-- frames --      what the client receives
//
// Where frames ask something of the gateway itself (Suite.Asks), intents also shows that. A bus line with sequence 0 is a direct
// message. A dialect may have lines of its own in bus: see Suite.Said.
//
// The flag -update rewrites intents, replies and frames.
package dialecttest

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io/fs"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Suite says what is special about a dialect.
type Suite struct {
	Dialect     dialect.Dialect
	Package     string       // import path of the codec, which must be pure
	Variants    []url.Values // one query for every codec that Bind can return
	Transcripts string       // folder of golden transcripts
	Schema      string       // the bundle, with a definition for every message type
	Examples    fs.FS        // examples <type>.json of the protocol's description
	Inbound     []string     // message types from the client
	Outbound    []string     // message types to the client
	Kind        string       // the member of a message that names its type; empty = type
	Accepted    []string     // messages of the client in all shapes that are accepted, besides the examples
	Unsaid      []string     // members of examples that the dialect never sends: <type> <path>

	Log    subject.Log            // of the sockets; zero = Session
	Name   func(frame any) string // the name of a parsed frame's schema, where no member is its type
	Beyond []string               // fields with rules that a schema cannot say

	// Place returns where a client resumes that has the frame with the position: after the event with the sequence seq, and skip
	// frames of the next one. nil: a frame has the sequence of its event, and the client resumes after that.
	Place func(position uint64) (seq uint64, skip int)
	// Said returns the frames of a line !word arg of the section bus that only this dialect has, and that come after the events;
	// nil = it has none.
	Said func(t *testing.T, codec dialect.Codec, events []event.Event, word, arg string) [][]byte

	// Dense: every event gives a frame, but for parts of texts, and at most one, so that the seq of any frame is a safe place to
	// resume. So does a direct message, which has sequence 0.
	Dense bool
	// Asks returns what a frame asks of the gateway itself, as transcripts show it; empty: Decode says what it asks for. The error
	// is that of Decode. nil = Decode says it of every frame.
	Asks func(t testing.TB, codec dialect.Codec, frame []byte) (string, error)
	// Refuse returns the frame that tells the client of a fault of its frame; nil = Fail does.
	Refuse func(codec dialect.Codec, frame []byte, f *fault.Fault) []byte
}

// both are the groups of a bundle.
var both = []string{"in", "out"}

// checker is a suite with its schemas compiled and its codecs bound.
type checker struct {
	Suite
	schemas schemas
	bound   []dialect.Codec

	readings readings
}

func load(t testing.TB, s Suite) *checker {
	t.Helper()
	all, err := compile(s.Schema, both...)
	require.NoError(t, err)
	if s.Kind == "" {
		s.Kind = "type"
	}
	if s.Log.Entity.IsZero() {
		s.Log = Session
	}
	c := &checker{Suite: s, schemas: all, readings: newReadings()}
	for _, q := range s.Variants {
		codec, err := s.Dialect.Bind(q)
		require.NoError(t, err)
		c.bound = append(c.bound, codec)
	}
	require.NotEmpty(t, c.bound, "a suite needs at least one variant")
	return c
}

// codecs checks that variants are values of a fixed set with names of their own.
func (c *checker) codecs(t *testing.T) {
	names := map[string]bool{}
	for i, codec := range c.bound {
		again, err := c.Dialect.Bind(c.Variants[i])
		require.NoError(t, err)
		require.Equal(t, codec.Name(), again.Name(), "the same query binds the same codec")
		require.False(t, names[codec.Name()], "two codecs are called %s", codec.Name())
		names[codec.Name()] = true
	}
	require.NotEmpty(t, c.Dialect.Name())
}

// Session is the log to which the sockets of the suite belong.
var Session = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")}

// Now is the time of the suite's sockets.
var Now = time.Date(2026, time.March, 1, 12, 0, 0, 123_000_000, time.UTC)

// Link is the socket that frames of the suite go to.
var Link = dialect.Link{ConnectionID: "conn-1", Now: Now, Uptime: 90 * time.Second}

// inbound returns a socket whose fresh ids are cmd-1, cmd-2, ...
func (c *checker) inbound() dialect.Inbound {
	n := 0
	return dialect.Inbound{Kind: c.Log.Kind, NewID: func() string {
		n++
		return fmt.Sprintf("cmd-%d", n)
	}}
}

// typeOf returns the type of a frame.
func (c *checker) typeOf(frame []byte) string {
	if c.Name != nil {
		v, _ := read(frame) // No JSON is of no type.
		return c.Name(v)
	}
	return member(frame, c.Kind)
}

// member returns a string member of a frame, empty if it has none.
func member(frame []byte, name string) string {
	var m map[string]json.RawMessage
	var s string
	if json.Unmarshal(frame, &m) != nil || json.Unmarshal(m[name], &s) != nil {
		return ""
	}
	return s
}

// types are the canonical types, with the direct messages if the dialect has a place for them.
func (c *checker) types() []event.Info {
	if !c.Dense {
		return event.Catalogue
	}
	return append(append([]event.Info(nil), event.Catalogue...), event.DirectMessages...)
}

// readings remembers what frames say: the variants of a codec differ in few of them, so
// that most frames come several times.
type readings struct {
	seed maphash.Seed
	of   map[uint64]reading
}

func newReadings() readings { return readings{seed: maphash.MakeSeed(), of: map[uint64]reading{}} }
