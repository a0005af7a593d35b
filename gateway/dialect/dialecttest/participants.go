package dialecttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// ParticipantSuite says what is special about one role of a protocol of participants. The
// demands on its codec are written at dialect.Participants.
//
// Golden transcripts are txtar files:
//
//	what the transcript shows, for people
//	-- participant --      the participant as registered (optional: Registered)
//	-- task --      the only task that it has (optional: none)
//	-- last --      the task that was mentioned last (optional: the only one)
//	-- watched --   the log that it watches: tenant.kind.id (optional: none)
//	-- client --    frames of the participant, one a line
//	-- orders --    what they ask for: an order, or a fault, for each
//	-- replies --   the frames that tell of faults, and those that answer at once
//	-- bus --       events and direct messages, one a line; !welcome [JSON of the opened inbox],
//	                !ping, !refuse CODE and !answer N JSON (the reply to order N, from 1)
//	                stand for the frames of the gateway between them
//	-- frames --    what the participant receives
//
// The flag -update rewrites orders, replies and frames.
type ParticipantSuite struct {
	Codec       dialect.Participants
	Package     string            // import path of the codec, which must be pure
	Transcripts string            // folder of golden transcripts
	Schema      string            // the bundle: <role>.in.<type> and <role>.out.<type>
	Examples    fs.FS             // in/<type>.json and out/<type>.json; nil = the protocol has none
	Inbound     []string          // message types from the participant
	Aliases     map[string]string // other names of those
	Outbound    []string          // message types to the participant
	Accepted    []string          // messages in all shapes that are accepted, besides the examples
	Unsaid      []string          // members of examples that are never sent: <type> <path>
	NoLog       bool              // the participant has no log, and gets direct messages only
}

// Registered is the participant of the suite's sockets.
func Registered(kind string) command.Participant {
	return command.Participant{
		Kind: kind, Tenant: Session.Tenant, ID: kind + "-1", Name: "Peer One", Status: command.StatusActive, Online: true,
		Gateway: "gw-1", Connection: Link.ConnectionID, Since: Now,
	}
}

// participants is a suite with its schemas compiled.
type participants struct {
	ParticipantSuite
	in   schemas
	said *checker // of the frames for the participant
}

func loadParticipants(t testing.TB, s ParticipantSuite) *participants {
	t.Helper()
	in, err := compile(s.Schema, s.Codec.Kind()+".in")
	require.NoError(t, err)
	out, err := compile(s.Schema, s.Codec.Kind()+".out")
	require.NoError(t, err)
	said := &checker{Suite: Suite{Kind: "type", Outbound: s.Outbound}, schemas: out, readings: newReadings()}
	return &participants{ParticipantSuite: s, in: in, said: said}
}

// codec checks that every message type has a schema and that none is left over.
func (c *participants) codec(t *testing.T) {
	require.NotEmpty(t, c.Codec.Name())
	require.Contains(t, []string{command.ParticipantClient, command.ParticipantAgent, command.ParticipantService}, c.Codec.Kind())
	in := slices.Clone(c.Inbound)
	for alias, of := range c.Aliases {
		require.Contains(t, c.Inbound, of)
		in = append(in, alias)
	}
	require.ElementsMatch(t, in, named(c.in))
	require.ElementsMatch(t, c.Outbound, named(c.said.schemas))
}

func named(s schemas) []string {
	var out []string
	for name := range s {
		out = append(out, name)
	}
	return out
}

// kindOf returns the type of a frame.
func kindOf(frame []byte) string { return member(frame, "type") }

// frame requires that a frame for the participant is of a known type and fits its schema.
func (c *participants) frame(t require.TestingT, frame []byte) reading { return c.said.frame(t, frame) }

// socket returns what the codec may know of the suite's socket.
func (c *participants) socket() dialect.ParticipantInbound {
	n := 0
	return dialect.ParticipantInbound{Participant: Registered(c.Codec.Kind()), OnlyTask: "task-1", LastTask: "task-1", Now: Now, NewID: func() string {
		n++
		return fmt.Sprintf("new-%d", n)
	}}
}

// orders checks all that is promised of Orders for one document, and returns its orders.
func (c *participants) orders(t testing.TB, doc []byte) []dialect.Order {
	t.Helper()
	kept := string(doc)
	got, requestID, err := c.Codec.Orders(doc, c.socket())
	if kept != string(doc) {
		require.Equal(t, kept, string(doc), "Orders must not change the frame")
	}
	if err != nil {
		require.Empty(t, got, "%.200q: a fault means that nothing was asked", doc)
		f, ok := errors.AsType[*fault.Fault](err)
		require.True(t, ok, "%.200q: an error of Orders is a fault, not %T", doc, err)
		require.NotEqual(t, fault.Internal, f.Code, "%.200q: a participant's mistake is not ours", doc)
		reply := c.Codec.Refuse(Link, dialect.Order{RequestID: requestID}, f)
		c.frame(t, reply)
		require.Less(t, len(reply), maxRefusal+len(requestID), "a refusal must not quote the whole message: %s", reply)
	}
	for _, o := range got {
		c.sane(t, o)
	}
	if kind := kindOf(doc); c.in[kind] != nil && strictjson.Check(doc) == nil {
		if fits := c.in.check(kind, doc); (fits == nil) != (err == nil) {
			require.Fail(t, "codec and schema differ", "%.300q: schema says %v, codec says %v", doc, fits, err)
		}
	}
	return got
}

// sane checks that exactly one kind of an order is set and that it can be carried out.
func (c *participants) sane(t testing.TB, o dialect.Order) {
	t.Helper()
	kinds := 0
	for _, set := range []bool{o.Intent != nil, o.Ask != nil, o.Register != nil, o.Forward != nil, len(o.Frames) > 0, o.Leave} {
		if set {
			kinds++
		}
	}
	require.Equal(t, 1, kinds, "%+v", o)
	for _, f := range o.Frames {
		c.frame(t, f)
	}
	switch {
	case o.Intent != nil:
		sound(t, *o.Intent)
	case o.Ask != nil:
		require.NotEmpty(t, dialect.Topic(o.Ask))
		_, err := json.Marshal(o.Ask)
		require.NoError(t, err)
	case o.Register != nil:
		require.Equal(t, c.Codec.Kind(), o.Register.Kind)
		require.NotEmpty(t, o.Register.ID)
		_, err := json.Marshal(o.Register)
		require.NoError(t, err)
	case o.Forward != nil:
		require.NotEmpty(t, o.Forward.CallID)
		require.Equal(t, o.Forward.Final, o.Forward.Notification == nil)
		require.False(t, o.Forward.Failure != nil && o.Forward.Result != nil, "an outcome is one of both")
	}
}

// accepted are the frames that the suite knows to be accepted.
func (c *participants) accepted(t testing.TB) []string {
	t.Helper()
	out := slices.Clone(c.Accepted)
	for _, raw := range c.described(t, "in") {
		out = append(out, string(raw))
	}
	return out
}

// described returns the examples of the protocol's description for one direction.
func (c *participants) described(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	if c.Examples == nil {
		return out
	}
	entries, err := fs.ReadDir(c.Examples, dir)
	require.NoError(t, err)
	for _, e := range entries {
		raw, err := fs.ReadFile(c.Examples, dir+"/"+e.Name())
		require.NoError(t, err)
		require.Equal(t, e.Name(), kindOf(raw)+".json")
		out[kindOf(raw)] = raw
	}
	return out
}

// hostile feeds the codec documents that no friendly participant sends. Whether it takes one
// must agree with the schema of its type.
func (c *participants) hostile(t *testing.T) {
	types := slices.Clone(c.Inbound)
	for alias := range c.Aliases {
		types = append(types, alias)
	}
	slices.Sort(types)
	accepted := c.accepted(t)
	for _, doc := range accepted {
		c.orders(t, []byte(doc))
		_, _, err := c.Codec.Orders([]byte(doc), c.socket())
		require.NoError(t, err, "%s", doc)
	}
	docs := thin(hostileTo(t, "type", types, accepted), enough/2)
	require.Greater(t, len(docs), 300)
	for _, doc := range docs {
		c.orders(t, []byte(doc))
	}
}

// torn feeds the codec frames of which only the ends are there, wherever they are torn: each
// is refused, or is a failure.
func (c *participants) torn(t *testing.T) {
	docs := c.accepted(t)
	rapid.Check(t, func(r *rapid.T) {
		doc := []byte(rapid.SampledFrom(docs).Draw(r, "doc"))
		i := rapid.IntRange(0, len(doc)).Draw(r, "head")
		j := rapid.IntRange(i, len(doc)).Draw(r, "tail")
		frame := dialect.Torn{Head: slices.Clone(doc[:i]), Tail: slices.Clone(doc[j:]), Size: 2 << 20, Limit: 1 << 20}
		got, requestID, err := c.Codec.Oversized(frame, c.socket())
		if err != nil {
			f, ok := errors.AsType[*fault.Fault](err)
			require.True(r, ok, "%T", err)
			require.Equal(r, fault.MessageTooBig, f.Code)
			require.Empty(r, got)
			c.frame(r, c.Codec.Refuse(Link, dialect.Order{RequestID: requestID}, f))
			return
		}
		require.Len(r, got, 1)
		o := got[0]
		c.sane(t, o)
		if o.Forward != nil {
			require.ErrorIs(r, o.Forward.Failure, fault.New(fault.MessageTooBig))
			return
		}
		end, ok := o.Intent.Data.(dialect.FinishTask)
		require.True(r, ok, "%T", o.Intent.Data)
		require.Equal(r, []any{true, string(fault.MessageTooBig), ""}, []any{end.Failed, end.Code, string(end.Result)})
	})
}

// faults checks that every fault of the catalogue can be told, and that nothing of its
// cause is.
func (c *participants) faults(t *testing.T) {
	const secret = "nats: 10.0.0.7 refused"
	for _, entry := range fault.Catalogue {
		f := fault.New(entry.Code).Wrap(errors.New(secret)).At("content")
		f.Ref = "ref-1"
		frame := c.Codec.Refuse(Link, dialect.Order{RequestID: "req-1"}, f)
		c.frame(t, frame)
		require.NotContains(t, string(frame), secret)
		require.Contains(t, string(frame), "ref-1")
		require.Equal(t, "req-1", member(frame, "requestId"))
	}
}

// types are all canonical types.
func (c *participants) types() []event.Info {
	return append(append([]event.Info(nil), event.Catalogue...), event.DirectMessages...)
}

// events encodes every canonical type with every text, and with every kind of JSON in data
// of every form.
func (c *participants) events(t *testing.T) {
	for _, info := range c.types() {
		for i, text := range texts {
			c.encode(t, c.event(info.Type, uint64(i), fill(t, info, text, `{}`, i)))
		}
		for i, raw := range raws {
			c.encode(t, c.event(info.Type, uint64(i), fill(t, info, "plain", raw, i)))
		}
	}
	require.Empty(t, c.Codec.Encode(c.event("something.new", 1, []byte(`{}`))), "an event that a codec does not know is passed over")
}

// inbox is the log of the client of the suite.
var inbox = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindInbox, Entity: id.EntityFromExternal("client-1")}

// event returns an event of the client's log, or a direct message without such a log.
func (c *participants) event(kind event.Type, seq uint64, data []byte) event.Event {
	if c.NoLog {
		seq = 0
	}
	return event.Event{
		SpecVersion: event.SpecVersion, ID: "e1", Source: "test", Type: kind, Subject: inbox.Name(), Time: Now, Sequence: seq, Data: data,
	}
}

// encode checks all that is promised of Encode for one event with sane data: of its
// frames the last has its seq.
func (c *participants) encode(t require.TestingT, e event.Event) {
	got := c.Codec.Encode(e)
	said := c.said.frames(t, got)
	if again := c.Codec.Encode(e); !slices.EqualFunc(got, again, bytes.Equal) {
		require.Equal(t, got, again, "the same event gives the same bytes")
	}
	lastHasSeq(t, e, said)
	for _, f := range c.Codec.Repeat(e) {
		r := c.frame(t, f)
		require.Zero(t, r.seq+r.watched)
		require.Equal(t, said[len(said)-1].id, r.id, "a repeated frame keeps its id")
	}
}

func lastHasSeq(t require.TestingT, e event.Event, said []reading) {
	ids := map[string]bool{}
	for i, r := range said {
		want := uint64(0)
		if i == len(said)-1 {
			want = e.Sequence
		}
		if r.seq+r.watched != want || ids[r.id] {
			require.Equal(t, want, r.seq+r.watched, "%+v", r)
			require.False(t, ids[r.id], "two frames of an event have one id")
		}
		ids[r.id] = true
	}
}

// anyEvent draws events of any type with any data.
func (c *participants) anyEvent(t *testing.T) {
	types := c.types()
	rapid.Check(t, func(r *rapid.T) {
		info := types[rapid.IntRange(0, len(types)-1).Draw(r, "type")]
		e := c.event(info.Type, rapid.Uint64Range(0, 1<<53).Draw(r, "sequence"), fill(
			t, info, rapid.String().Draw(r, "text"), `{"k":`+jsonString(rapid.String().Draw(r, "raw"))+`}`, rapid.IntRange(0, 9).Draw(r, "n"),
		))
		e.Time = Now.Add(time.Duration(rapid.Int64Range(0, 1<<50).Draw(r, "time")))
		c.encode(r, e)
	})
}

// cuts checks whole histories: a client whose connection breaks behind any frame, and that
// resumes behind the last seq that it has, gets the frames that it misses, after those that
// it already has of the same event.
func (c *participants) cuts(t *testing.T) {
	if c.NoLog {
		return // the participant has no log
	}
	types := c.types()
	rapid.Check(t, func(r *rapid.T) {
		var all [][]byte
		var perEvent [][][]byte
		for i := range rapid.IntRange(1, 8).Draw(r, "events") {
			info := types[rapid.IntRange(0, len(types)-1).Draw(r, "type")]
			e := c.event(info.Type, uint64(i+1), fill(t, info, rapid.String().Draw(r, "text"), `{"k":1}`, rapid.IntRange(0, 9).Draw(r, "n")))
			perEvent = append(perEvent, c.Codec.Encode(e))
			all = append(all, perEvent[i]...)
		}
		has := uint64(0)
		for n, f := range all {
			has = max(has, seqOf(f))
			var rest [][]byte
			for _, frames := range perEvent[has:] {
				rest = append(rest, frames...)
			}
			missed := len(all) - n - 1
			require.GreaterOrEqual(r, len(rest), missed, "%s", f)
			require.Equal(r, joined(all[len(all)-len(rest):]), joined(rest), "the frames after %d", has)
			for _, again := range rest[:len(rest)-missed] {
				require.Zero(r, seqOf(again), "a frame with a seq is not sent again")
			}
		}
	})
}

// damage gives the codec events that no writer of this program makes. Its frames
// must be JSON text.
func (c *participants) damage(t *testing.T) {
	for _, info := range c.types() {
		for _, data := range []string{``, `null`, `[]`, `{`, `{}`, `"x"`, `{"task_id":1}`, `{"data":{"a":"` + "\xff" + `"}}`, `{"attempt":"x"}`} {
			c.damaged(t, c.event(info.Type, 7, []byte(data)))
		}
	}
}

func (c *participants) damaged(t testing.TB, e event.Event) {
	t.Helper()
	var said []reading
	for _, f := range c.Codec.Encode(e) {
		r, err := c.said.read(f)
		if err != nil || !slices.Contains(c.Outbound, r.kind) {
			require.NoError(t, err, "%q", f)
			require.Contains(t, c.Outbound, r.kind)
		}
		said = append(said, r)
	}
	lastHasSeq(t, e, said)
}

// FuzzOrders feeds arbitrary frames to the codec.
func FuzzOrders(f *testing.F, s ParticipantSuite) {
	c := loadParticipants(f, s)
	for i, doc := range hostileDocuments("type", s.Inbound) {
		if i%seedStride == 0 {
			f.Add([]byte(doc))
		}
	}
	for _, doc := range c.accepted(f) {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) { c.orders(t, doc) })
}

// FuzzParticipantEncode feeds the codec events of every type: with arbitrary texts where data
// is well formed, and with arbitrary bytes as data.
func FuzzParticipantEncode(f *testing.F, s ParticipantSuite) {
	c := loadParticipants(f, s)
	types := c.types()
	for i, info := range types {
		f.Add(uint8(i), texts[i%len(texts)], []byte(fill(f, info, "x", `{}`, i)), uint64(i))
	}
	f.Fuzz(func(t *testing.T, kind uint8, text string, raw []byte, seq uint64) {
		info := types[int(kind)%len(types)]
		c.damaged(t, c.event(info.Type, seq, raw))
		inner := "{}"
		if json.Valid(raw) {
			inner = string(raw)
		}
		c.encode(t, c.event(info.Type, seq, fill(t, info, text, inner, int(seq%3))))
	})
}
