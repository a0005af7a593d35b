package dialecttest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// faults checks that every fault of the catalogue can be told, and that nothing of
// its cause is, and nothing of what a model's provider said.
func (c *checker) faults(t *testing.T) {
	const secret = "nats: 10.0.0.7 refused"
	for _, codec := range c.bound {
		for _, entry := range fault.Catalogue {
			f := fault.New(entry.Code).Wrap(errors.New(secret)).At("content")
			f.Ref = "ref-1"
			for _, frame := range told(codec, f) {
				c.frame(t, frame)
				require.NotContains(t, string(frame), secret)
				require.Contains(t, string(frame), "ref-1")
			}
		}
		c.frame(t, codec.Truncated(18, Now))
		said := &event.ProviderError{Status: 418, Code: secret, RequestID: secret, Message: secret}
		for _, d := range []event.Data{
			event.RequestFailedData{RunID: "r", Provider: said}, event.JobFailedData{RunID: "r", Provider: said}, event.RunFailedData{RunID: "r", Provider: said},
		} {
			e, err := event.New(c.Log, "e1", "test", Now, d)
			require.NoError(t, err)
			e.Sequence = 1
			for _, frame := range codec.Encode(e) {
				require.NotContains(t, string(frame), secret, "the provider's words are for operators")
			}
		}
	}
}

// told returns every frame that can tell of a fault.
func told(codec dialect.Codec, f *fault.Fault) [][]byte {
	out := [][]byte{codec.Fail(f, Now)}
	if s, ok := codec.(dialect.Sessions); ok {
		for _, a := range actions {
			out = append(out, s.Refuse(Link, Session.Entity.String(), a, f))
		}
	}
	return out
}

// texts are what models, tools and users may write.
var texts = []string{
	"plain", "", "quotes \" and \\ back", "line\nbreak\ttab", "nul \x00 bell \a", "\u2028\u2029", "<b>&amp;</b>",
	"\U0001F41D bees", "e\u0301 \u202e right to left", `{"json":"inside"}`, strings.Repeat("é", 199), strings.Repeat("é", 200),
	strings.Repeat("é", 201), strings.Repeat("\U0001F41D", 5000), "bad \xff utf-8",
}

// raws are JSON that comes from elsewhere: arguments, contexts, states.
var raws = []string{`{}`, `{"a":{"b":[1,2]}}`, `[1,"x"]`, `"x"`, `null`, `1e999`}

// events encodes every canonical type with every text and every kind of JSON, and
// checks the frames.
func (c *checker) events(t *testing.T) {
	for _, info := range c.types() {
		for i := range max(len(texts), len(raws)) {
			e := event.Event{
				SpecVersion: event.SpecVersion, ID: "e1", Source: "test", Type: info.Type,
				Subject: c.Log.Name(), Time: Now, Sequence: uint64(i + 1), Stream: uint64(i * 7),
			}
			for _, data := range []json.RawMessage{
				fill(t, info, texts[i%len(texts)], `{}`, i), fill(t, info, "plain", raws[i%len(raws)], i),
			} {
				e.Data = data
				for _, codec := range c.bound {
					c.encode(t, codec, e)
				}
			}
		}
	}
	e := event.Event{Type: "something.new", Subject: c.Log.Name(), Sequence: 1, Time: Now, Data: []byte(`{}`)}
	for _, codec := range c.bound {
		if _, dense := codec.(dialect.Sessions); !dense {
			require.Empty(t, codec.Encode(e), "an event that a codec does not know is passed over")
			continue
		}
		c.encode(t, codec, e)
		require.Contains(t, string(codec.Encode(e)[0]), string(e.Type), "a viewer is told that there was something")
	}
}

// types are the canonical types, with the direct messages if the dialect has a place for them.
func (c *checker) types() []event.Info {
	if !c.dense() {
		return event.Catalogue
	}
	return append(append([]event.Info(nil), event.Catalogue...), event.DirectMessages...)
}

// dense reports whether every event gives a frame.
func (c *checker) dense() bool {
	_, ok := c.bound[0].(dialect.Sessions)
	return ok
}

// encode checks all that is promised of Encode for one event with sane data.
func (c *checker) encode(t require.TestingT, codec dialect.Codec, e event.Event) {
	got := codec.Encode(e)
	for _, f := range got {
		c.frame(t, f)
	}
	c.positions(t, codec, e, got)
	c.oneAtMost(t, codec, e, got)
}

// positions checks that every frame of an event says where a client is that has it.
func (*checker) positions(t require.TestingT, codec dialect.Codec, e event.Event, got [][]byte) {
	if teams, ok := codec.(dialect.Teams); ok {
		placed(t, teams, e, got)
		return
	}
	for _, f := range got {
		require.Equal(t, e.Sequence, seqOf(f), "%s", f)
	}
}

// oneAtMost checks what dialects promise in which a socket holds several sessions.
func (c *checker) oneAtMost(t require.TestingT, codec dialect.Codec, e event.Event, got [][]byte) {
	if _, dense := codec.(dialect.Sessions); !dense {
		return
	}
	if len(got) == 0 && unsaid[event.Unwrap(e).Type] {
		return
	}
	require.Len(t, got, 1, "an event without a frame is a gap for clients")
	var at struct {
		SessionID string `json:"session_id"`
		EventID   string `json:"event_id"`
	}
	require.NoError(t, json.Unmarshal(got[0], &at))
	require.Equal(t, Session.Entity.String(), at.SessionID)
	if e.Sequence == 0 {
		require.Empty(t, at.EventID, "a direct message has no position")
		return
	}
	require.Equal(t, Session.Entity.String()+"-"+cursor(e), at.EventID, "%s", got[0])
}

// unsaid are the types that may have no frame: parts of texts that are shown later, and
// details of the work that some protocols have no word for.
var unsaid = map[event.Type]bool{
	event.MessageStarted: true, event.MessageDelta: true, event.MessageCompleted: true,
	event.RunStarted: true, event.ToolStarted: true, event.UsageRecorded: true,
}

// anyEvent draws events of any type with any data, and checks the frames of each.
func (c *checker) anyEvent(t *testing.T) {
	types, lowest := c.types(), uint64(1)
	if c.dense() {
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
		for _, codec := range c.bound {
			c.encode(r, codec, e)
		}
	})
}

func jsonString(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
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
		got := codec.Encode(e)
		for _, f := range got {
			require.True(t, json.Valid(f) && utf8.Valid(f), "%q", f)
			require.Contains(t, c.Outbound, c.typeOf(f))
		}
		c.positions(t, codec, e, got)
		c.oneAtMost(t, codec, e, got)
	}
}
