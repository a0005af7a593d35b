package dialecttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// faults checks that every fault of the catalogue can be told, and that nothing of
// its cause is, and nothing of what a model's provider said or wants back.
func (c *checker) faults(t *testing.T) {
	const secret = "nats: 10.0.0.7 refused"
	for _, codec := range c.bound {
		for _, entry := range fault.Catalogue {
			f := fault.New(entry.Code).Wrap(errors.New(secret)).At("content")
			f.Ref = "ref-1"
			for _, frame := range c.faultFrames(codec, f) {
				c.frame(t, frame)
				require.NotContains(t, string(frame), secret)
				require.Contains(t, string(frame), "ref-1")
			}
		}
		c.frame(t, codec.Truncated(18, Now))
		said := &event.ProviderError{Status: 418, Code: secret, RequestID: secret, Message: secret}
		for _, d := range []event.Data{
			event.RequestFailedData{RunID: "r", Provider: said},
			event.JobFailedData{RunID: "r", Provider: said},
			event.RunFailedData{RunID: "r", Provider: said},
			event.ReasoningCompletedData{RunID: "r", PassBack: &event.PassBack{Provider: "p", Data: json.RawMessage(jsonString(secret))}},
		} {
			e, err := event.New(c.Log, "e1", "test", Now, d)
			require.NoError(t, err)
			e.Sequence = 1
			for _, frame := range codec.Encode(e) {
				require.NotContains(t, string(frame), secret, "the provider's words are for operators, or for the provider")
			}
		}
	}
}

// faultFrames returns every frame that can tell of a fault.
func (c *checker) faultFrames(codec dialect.Codec, f *fault.Fault) [][]byte {
	out := [][]byte{codec.Fail(f, Now)}
	if c.Refuse != nil {
		for _, kind := range c.Inbound {
			out = append(out, c.Refuse(codec, fmt.Appendf(nil, `{%q:%q}`, c.Kind, kind), f))
		}
	}
	return out
}

// Texts are what models, tools and users may write.
var Texts = []string{
	"plain", "", "quotes \" and \\ back", "line\nbreak\ttab", "nul \x00 bell \a", "\u2028\u2029", "<b>&amp;</b>",
	"\U0001F41D bees", "e\u0301 \u202e right to left", `{"json":"inside"}`, strings.Repeat("é", 199), strings.Repeat("é", 200),
	strings.Repeat("é", 201), strings.Repeat("\U0001F41D", 1000), "bad \xff utf-8",
}

// events encodes every canonical type with every text and every kind of JSON, and checks
// the frames. Which frame an event gives depends on the members that it has and on the
// variant: each variant gets each form of the data, with a text and without. Other Texts go
// through all variants alike: each type gets each text, and every pair of a type and a
// variant, and of a text and a variant, comes at least once.
func (c *checker) events(t *testing.T) {
	for n, info := range c.types() {
		for i, raw := range Raws {
			c.encodeAll(t, c.event(info.Type, i, fill(t, info, "plain", raw, i)))
		}
		for i := range 2 { // without and with what is optional
			c.encodeAll(t, c.event(info.Type, i, fill(t, info, "", `{}`, i)))
		}
		for i, text := range Texts {
			c.encode(t, c.bound[(n+i)%len(c.bound)], c.event(info.Type, i, fill(t, info, text, `{}`, i)))
		}
	}
	e := event.Event{Type: "something.new", Subject: c.Log.Name(), Sequence: 1, Time: Now, Data: []byte(`{}`)}
	for _, codec := range c.bound {
		if !c.Dense {
			require.Empty(t, codec.Encode(e), "an event that a codec does not know is passed over")
			continue
		}
		c.encode(t, codec, e)
		require.Contains(t, string(codec.Encode(e)[0]), string(e.Type), "a viewer sees that an event came")
	}
}

// event returns the event number i of the suite's log.
func (c *checker) event(kind event.Type, i int, data json.RawMessage) event.Event {
	return event.Event{
		SpecVersion: event.SpecVersion, ID: "e1", Source: "test", Type: kind,
		Subject: c.Log.Name(), Time: Now, Sequence: uint64(i + 1), Stream: uint64(i * 7), Data: data,
	}
}

// encodeAll gives an event to every variant.
func (c *checker) encodeAll(t require.TestingT, e event.Event) {
	for _, codec := range c.bound {
		c.encode(t, codec, e)
	}
}

// encode checks all that is promised of Encode for one event with sane data.
func (c *checker) encode(t require.TestingT, codec dialect.Codec, e event.Event) {
	c.placed(t, e, c.frames(t, codec.Encode(e)))
}

// placed checks that the frames of an event say where a client is that has them.
func (c *checker) placed(t require.TestingT, e event.Event, said []reading) {
	if c.Place != nil {
		c.each(t, e, said)
		return
	}
	for _, r := range said {
		if r.seq != e.Sequence {
			require.Equal(t, e.Sequence, r.seq, "%+v", r)
		}
	}
	if c.Dense {
		c.oneAtMost(t, e, said)
	}
}

// oneAtMost checks what dialects promise in which a socket holds several sessions.
func (*checker) oneAtMost(t require.TestingT, e event.Event, said []reading) {
	if len(said) == 0 && unsaid[event.Unwrap(e).Type] {
		return
	}
	if len(said) != 1 {
		require.Len(t, said, 1, "an event without a frame is a gap for clients")
	}
	if event.Unwrap(e).Type == event.SessionCreated && e.Sequence == 1 {
		e.Stream = 0 // clients are shown it before it has a place
	}
	want := "" // a direct message has no position
	if e.Sequence > 0 {
		want = Session.Entity.String() + "-" + cursor(e)
	}
	if r := said[0]; r.session != Session.Entity.String() || r.eventID != want {
		require.Equal(t, []string{Session.Entity.String(), want}, []string{r.session, r.eventID})
	}
}

// unsaid are the types that may have no frame: parts of Texts that are shown later, and
// details of the work that some protocols have no word for.
var unsaid = map[event.Type]bool{
	event.MessageStarted: true, event.MessageDelta: true, event.MessageCompleted: true, event.MessageDiscarded: true, event.ReasoningDelta: true, event.ReasoningCompleted: true,
	event.RunStarted: true, event.ToolStarted: true, event.UsageRecorded: true,
}

// anyEvent draws events of any type with any data, and checks the frames of each.
func (c *checker) anyEvent(t *testing.T) {
	types, lowest := c.types(), uint64(1)
	if c.Dense {
		lowest = 0 // a direct message
	}
	rapid.Check(t, func(r *rapid.T) {
		info := types[rapid.IntRange(0, len(types)-1).Draw(r, "type")]
		e := event.Event{
			Type: info.Type, Subject: c.Log.Name(), Time: Now,
			Sequence: rapid.Uint64Range(lowest, 1<<53).Draw(r, "sequence"), Stream: rapid.Uint64().Draw(r, "stream"),
			Data: fill(t, info, rapid.String().Draw(r, "text"), `{"k":`+jsonString(rapid.String().Draw(r, "raw"))+`}`, rapid.IntRange(0, 9).Draw(r, "n")),
		}
		e.From = rapid.Uint64Range(0, e.Sequence).Draw(r, "from")
		c.encodeAll(r, e)
	})
}

// damage gives every codec events that no writer of this program makes. Its frames
// must be JSON text; frames may be missing, but not where every event gives one.
func (c *checker) damage(t *testing.T) {
	for _, info := range c.types() {
		for _, data := range []string{``, `null`, `[]`, `{`, `{}`, `"x"`, `{"execution_id":1}`, `{"arguments":{"a":"` + "\xff" + `"}}`, `{"attempt":"x"}`} {
			c.encodeDamaged(t, event.Event{Type: info.Type, Subject: c.Log.Name(), Sequence: 7, Time: Now, Data: []byte(data)})
		}
	}
}

func (c *checker) encodeDamaged(t testing.TB, e event.Event) {
	t.Helper()
	for _, codec := range c.bound {
		var said []reading
		for _, f := range codec.Encode(e) {
			r, err := c.read(f)
			if err != nil || !slices.Contains(c.Outbound, r.kind) {
				require.NoError(t, err, "%q", f)
				require.Contains(t, c.Outbound, r.kind)
			}
			said = append(said, r)
		}
		c.placed(t, e, said)
	}
}

// cursor is the form of event ids.
func cursor(e event.Event) string {
	s := strconv.FormatUint(e.Sequence, 10)
	if e.Stream != 0 {
		s += "." + strconv.FormatUint(e.Stream, 10)
	}
	return s
}

// Raws are JSON that comes from elsewhere: arguments, contexts, states.
var Raws = []string{`{}`, `{"a":{"b":[1,2]}}`, `[1,"x"]`, `"x"`, `null`, `1e999`}
