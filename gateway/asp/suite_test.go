package asp_test

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

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/dialecttest"
	"github.com/waggle-dev/waggle/internal/strictjson"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// role is one role of the protocol: clients, agents or services. The demands on its codec are written at asp.Codec.
//
// Golden transcripts are txtar files:
//
//	what the transcript shows, for people
//	-- peer --      the participant as registered (optional: registered)
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
type role struct {
	*asp.Codec
	wire.Types
	accepted []string              // messages in all shapes that are accepted, besides the examples
	noLog    bool                  // the participant has no log, and gets direct messages only
	in       *dialecttest.Messages // of the participant
	said     *dialecttest.Messages // of the frames for the participant
}

func load(t testing.TB, kind string, accepted []string) *role {
	t.Helper()
	return &role{
		Codec: codecs[kind], Types: types[kind], accepted: accepted, noLog: kind != command.ParticipantClient,
		in:   dialecttest.MessagesOf(t, wire.Schema, kind+".in", types[kind].In),
		said: dialecttest.MessagesOf(t, wire.Schema, kind+".out", types[kind].Out),
	}
}

// registered is the participant of the suite's sockets.
func registered(kind string) command.Participant {
	return command.Participant{
		Kind: kind, Tenant: dialecttest.Session.Tenant, ID: kind + "-1", Name: "Peer One", Status: command.StatusActive, Online: true,
		Gateway: "gw-1", Connection: dialecttest.Link.ConnectionID, Since: dialecttest.Now,
	}
}

// unsaid are members of the description's examples that no frame has. The schemas say why.
var unsaid = []string{"service.started content.estimatedDuration", "error content.stack"}

// codec checks that every message type has a schema and that none is left over.
func (c *role) codec(t *testing.T) {
	require.NotEmpty(t, c.Name())
	require.Contains(t, kinds, c.Kind())
	in := slices.Clone(c.In)
	for alias, of := range c.Aliases {
		require.Contains(t, c.In, of)
		in = append(in, alias)
	}
	require.ElementsMatch(t, in, c.in.Names())
	require.ElementsMatch(t, c.Out, c.said.Names())
}

// kindOf returns the type of a frame, empty if it has none.
func kindOf(frame []byte) string { return member(frame, "type") }

// member returns a string member of a frame, empty if it has none.
func member(frame []byte, name string) string {
	var m map[string]json.RawMessage
	var s string
	if json.Unmarshal(frame, &m) != nil || json.Unmarshal(m[name], &s) != nil {
		return ""
	}
	return s
}

// frame requires that a frame for the participant is of a known type and fits its schema.
func (c *role) frame(t require.TestingT, frame []byte) dialecttest.Reading {
	return c.said.Frame(t, frame)
}

// socket returns what the codec may know of the suite's socket.
func (c *role) socket() asp.Inbound {
	n := 0
	return asp.Inbound{Participant: registered(c.Kind()), OnlyTask: "task-1", LastTask: "task-1", Now: dialecttest.Now, NewID: func() string {
		n++
		return fmt.Sprintf("new-%d", n)
	}}
}

// orders checks all that is promised of Orders for one document, and returns its orders.
func (c *role) orders(t testing.TB, doc []byte) []asp.Order {
	t.Helper()
	kept := string(doc)
	got, requestID, err := c.Orders(doc, c.socket())
	if kept != string(doc) {
		require.Equal(t, kept, string(doc), "Orders must not change the frame")
	}
	if err != nil {
		require.Empty(t, got, "%.200q: a fault means that nothing was asked", doc)
		f, ok := errors.AsType[*fault.Fault](err)
		require.True(t, ok, "%.200q: an error of Orders is a fault, not %T", doc, err)
		require.NotEqual(t, fault.Internal, f.Code, "%.200q: a participant's mistake is not ours", doc)
		reply := c.Refuse(dialecttest.Link, asp.Order{RequestID: requestID}, f)
		c.frame(t, reply)
		require.Less(t, len(reply), dialecttest.MaxRefusal+len(requestID), "a refusal must not quote the whole message: %s", reply)
	}
	for _, o := range got {
		c.sane(t, o)
	}
	if kind := kindOf(doc); slices.Contains(c.in.Names(), kind) && strictjson.Check(doc) == nil {
		if fits := c.in.Check(kind, doc); (fits == nil) != (err == nil) {
			require.Fail(t, "codec and schema differ", "%.300q: schema says %v, codec says %v", doc, fits, err)
		}
	}
	return got
}

// sane checks that exactly one kind of an order is set and that it can be carried out.
func (c *role) sane(t testing.TB, o asp.Order) {
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
		dialecttest.Sound(t, *o.Intent)
	case o.Ask != nil:
		require.NotEmpty(t, dialect.Topic(o.Ask))
		_, err := json.Marshal(o.Ask)
		require.NoError(t, err)
	case o.Register != nil:
		require.Equal(t, c.Kind(), o.Register.Kind)
		require.NotEmpty(t, o.Register.ID)
		_, err := json.Marshal(o.Register)
		require.NoError(t, err)
	case o.Forward != nil:
		require.NotEmpty(t, o.Forward.CallID)
		require.Equal(t, o.Forward.Final, o.Forward.Notification == nil)
		require.False(t, o.Forward.Failure != nil && o.Forward.Result != nil, "an outcome is one of both")
	}
}

// friendly are the frames that the suite knows to be accepted.
func (c *role) friendly(t testing.TB) []string {
	t.Helper()
	out := slices.Clone(c.accepted)
	for _, raw := range c.described(t, "in") {
		out = append(out, string(raw))
	}
	return out
}

// described returns the examples of the protocol's description for one direction.
func (c *role) described(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	if c.Kind() == command.ParticipantAgent {
		return out // The description has no examples for agents.
	}
	dir = "examples/" + c.Kind() + "/" + dir
	entries, err := fs.ReadDir(wire.Examples, dir)
	require.NoError(t, err)
	for _, e := range entries {
		raw, err := fs.ReadFile(wire.Examples, dir+"/"+e.Name())
		require.NoError(t, err)
		require.Equal(t, e.Name(), kindOf(raw)+".json")
		out[kindOf(raw)] = raw
	}
	return out
}

// hostile feeds the codec documents that no friendly participant sends. Whether it takes one
// must agree with the schema of its type.
func (c *role) hostile(t *testing.T) {
	types := slices.Clone(c.In)
	for alias := range c.Aliases {
		types = append(types, alias)
	}
	accepted := c.friendly(t)
	for _, doc := range accepted {
		c.orders(t, []byte(doc))
		_, _, err := c.Orders([]byte(doc), c.socket())
		require.NoError(t, err, "%s", doc)
	}
	docs := dialecttest.Hostile(t, types, accepted)
	require.Greater(t, len(docs), 300)
	for _, doc := range docs {
		c.orders(t, []byte(doc))
	}
}

// torn feeds the codec frames of which only the ends are there, wherever they are torn: each
// is refused, or is a failure.
func (c *role) torn(t *testing.T) {
	docs := c.friendly(t)
	rapid.Check(t, func(r *rapid.T) {
		doc := []byte(rapid.SampledFrom(docs).Draw(r, "doc"))
		i := rapid.IntRange(0, len(doc)).Draw(r, "head")
		j := rapid.IntRange(i, len(doc)).Draw(r, "tail")
		frame := asp.Torn{Head: slices.Clone(doc[:i]), Tail: slices.Clone(doc[j:]), Size: 2 << 20, Limit: 1 << 20}
		got, requestID, err := c.Oversized(frame, c.socket())
		if err != nil {
			f, ok := errors.AsType[*fault.Fault](err)
			require.True(r, ok, "%T", err)
			require.Equal(r, fault.MessageTooBig, f.Code)
			require.Empty(r, got)
			c.frame(r, c.Refuse(dialecttest.Link, asp.Order{RequestID: requestID}, f))
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
func (c *role) faults(t *testing.T) {
	const secret = "nats: 10.0.0.7 refused"
	for _, entry := range fault.Catalogue {
		f := fault.New(entry.Code).Wrap(errors.New(secret)).At("content")
		f.Ref = "ref-1"
		frame := c.Refuse(dialecttest.Link, asp.Order{RequestID: "req-1"}, f)
		c.frame(t, frame)
		require.NotContains(t, string(frame), secret)
		require.Contains(t, string(frame), "ref-1")
		require.Equal(t, "req-1", member(frame, "requestId"))
	}
}

// catalogue has all canonical types.
func catalogue() []event.Info {
	return append(append([]event.Info(nil), event.Catalogue...), event.DirectMessages...)
}

// events encodes every canonical type with every text, and with every kind of JSON in data
// of every form.
func (c *role) events(t *testing.T) {
	for _, info := range catalogue() {
		for i, text := range dialecttest.Texts {
			c.encode(t, c.event(info.Type, uint64(i), dialecttest.Filled(t, info, text, `{}`, i)))
		}
		for i, raw := range dialecttest.Raws {
			c.encode(t, c.event(info.Type, uint64(i), dialecttest.Filled(t, info, "plain", raw, i)))
		}
	}
	require.Empty(t, c.Encode(c.event("something.new", 1, []byte(`{}`))), "an event that a codec does not know is passed over")
}

// inbox is the log of the client of the suite.
var inbox = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindInbox, Entity: id.EntityFromExternal("client-1")}

// event returns an event of the client's log, or a direct message without such a log.
func (c *role) event(kind event.Type, seq uint64, data []byte) event.Event {
	if c.noLog {
		seq = 0
	}
	return event.Event{
		SpecVersion: event.SpecVersion, ID: "e1", Source: "test", Type: kind, Subject: inbox.Name(), Time: dialecttest.Now, Sequence: seq, Data: data,
	}
}

// encode checks all that is promised of Encode for one event with sane data: of its
// frames the last has its seq.
func (c *role) encode(t require.TestingT, e event.Event) {
	got := c.Encode(e)
	said := c.said.Frames(t, got)
	if again := c.Encode(e); !slices.EqualFunc(got, again, bytes.Equal) {
		require.Equal(t, got, again, "the same event gives the same bytes")
	}
	lastHasSeq(t, e, said)
	for _, f := range c.Repeat(e) {
		r := c.frame(t, f)
		require.Zero(t, r.Seq)
		require.Equal(t, said[len(said)-1].ID, r.ID, "a repeated frame keeps its id")
	}
}

func lastHasSeq(t require.TestingT, e event.Event, said []dialecttest.Reading) {
	ids := map[string]bool{}
	for i, r := range said {
		want := uint64(0)
		if i == len(said)-1 {
			want = e.Sequence
		}
		if r.Seq != want || ids[r.ID] {
			require.Equal(t, want, r.Seq, "%+v", r)
			require.False(t, ids[r.ID], "two frames of an event have one id")
		}
		ids[r.ID] = true
	}
}

// anyEvent draws events of any type with any data.
func (c *role) anyEvent(t *testing.T) {
	types := catalogue()
	rapid.Check(t, func(r *rapid.T) {
		info := types[rapid.IntRange(0, len(types)-1).Draw(r, "type")]
		e := c.event(info.Type, rapid.Uint64Range(0, 1<<53).Draw(r, "sequence"), dialecttest.Filled(
			t, info, rapid.String().Draw(r, "text"), fmt.Sprintf(`{"k":%q}`, rapid.StringMatching(`[ -!#-\[\]-~é]*`).Draw(r, "raw")), rapid.IntRange(0, 9).Draw(r, "n"),
		))
		e.Time = dialecttest.Now.Add(time.Duration(rapid.Int64Range(0, 1<<50).Draw(r, "time")))
		c.encode(r, e)
	})
}

// cuts checks whole histories: a client whose connection breaks after any frame, and that
// resumes after the last seq that it has, gets the frames that it misses, after those that
// it already has of the same event.
func (c *role) cuts(t *testing.T) {
	if c.noLog {
		return // the participant has no log
	}
	types := catalogue()
	rapid.Check(t, func(r *rapid.T) {
		var all [][]byte
		var perEvent [][][]byte
		for i := range rapid.IntRange(1, 8).Draw(r, "events") {
			info := types[rapid.IntRange(0, len(types)-1).Draw(r, "type")]
			e := c.event(info.Type, uint64(i+1), dialecttest.Filled(t, info, rapid.String().Draw(r, "text"), `{"k":1}`, rapid.IntRange(0, 9).Draw(r, "n")))
			perEvent = append(perEvent, c.Encode(e))
			all = append(all, perEvent[i]...)
		}
		has := uint64(0)
		for n, f := range all {
			has = max(has, c.frame(r, f).Seq)
			var rest [][]byte
			for _, frames := range perEvent[has:] {
				rest = append(rest, frames...)
			}
			missed := len(all) - n - 1
			require.GreaterOrEqual(r, len(rest), missed, "%s", f)
			require.Equal(r, bytes.Join(all[len(all)-len(rest):], nil), bytes.Join(rest, nil), "the frames after %d", has)
			for _, again := range rest[:len(rest)-missed] {
				require.Zero(r, c.frame(r, again).Seq, "a frame with a seq is not sent again")
			}
		}
	})
}

// damage gives the codec events that no writer of this program makes. Its frames
// must be JSON text.
func (c *role) damage(t *testing.T) {
	for _, info := range catalogue() {
		for _, data := range []string{``, `null`, `[]`, `{`, `{}`, `"x"`, `{"task_id":1}`, `{"data":{"a":"` + "\xff" + `"}}`, `{"attempt":"x"}`} {
			c.damaged(t, c.event(info.Type, 7, []byte(data)))
		}
	}
}

func (c *role) damaged(t testing.TB, e event.Event) {
	t.Helper()
	var said []dialecttest.Reading
	for _, f := range c.Encode(e) {
		said = append(said, c.said.Read(t, f))
	}
	lastHasSeq(t, e, said)
}

// fuzzOrders feeds arbitrary frames to the codec.
func fuzzOrders(f *testing.F, kind string, accepted []string) {
	c := load(f, kind, accepted)
	for _, doc := range append(dialecttest.Seeds(c.In), c.friendly(f)...) {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) { c.orders(t, doc) })
}

// fuzzEvents feeds the codec events of every type: with arbitrary dialecttest.Texts where data
// is well formed, and with arbitrary bytes as data.
func fuzzEvents(f *testing.F, kind string) {
	c := load(f, kind, nil)
	types := catalogue()
	for i, info := range types {
		f.Add(uint8(i), dialecttest.Texts[i%len(dialecttest.Texts)], []byte(dialecttest.Filled(f, info, "x", `{}`, i)), uint64(i))
	}
	f.Fuzz(func(t *testing.T, kind uint8, text string, raw []byte, seq uint64) {
		info := types[int(kind)%len(types)]
		c.damaged(t, c.event(info.Type, seq, raw))
		inner := "{}"
		if json.Valid(raw) {
			inner = string(raw)
		}
		c.encode(t, c.event(info.Type, seq, dialecttest.Filled(t, info, text, inner, int(seq%3))))
	})
}
