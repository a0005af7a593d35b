package dialecttest

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// faults checks that every fault of the catalogue can be told, and that nothing of
// its cause is.
func (c *checker) faults(t *testing.T) {
	const secret = "nats: 10.0.0.7 refused"
	for _, codec := range c.bound {
		for _, entry := range fault.Catalogue {
			f := fault.New(entry.Code).Wrap(errors.New(secret)).At("content")
			f.Ref = "ref-1"
			frame := codec.Fail(f, Now)
			c.frame(t, frame)
			require.NotContains(t, string(frame), secret)
			require.Contains(t, string(frame), "ref-1")
		}
		c.frame(t, codec.Truncated(18, Now))
	}
}

// texts are what models, tools and users may write.
var texts = []string{
	"plain", "", "quotes \" and \\ back", "line\nbreak\ttab", "nul \x00 bell \a", "\u2028\u2029", "<b>&amp;</b>",
	"\U0001F41D bees", "e\u0301 \u202e right to left", `{"json":"inside"}`, strings.Repeat("é", 199), strings.Repeat("é", 200),
	strings.Repeat("é", 201), strings.Repeat("\U0001F41D", 5000), "bad \xff utf-8",
}

// events encodes every canonical type with every text and checks the frames.
func (c *checker) events(t *testing.T) {
	for _, info := range event.Catalogue {
		for i, text := range texts {
			for _, raw := range []string{`{}`, `{"a":{"b":[1,2]}}`, `[1,"x"]`, `"x"`, `null`, `1e999`} {
				e := event.Event{
					SpecVersion: event.SpecVersion, ID: "e1", Source: "test", Type: info.Type,
					Subject: Session.Name(), Time: Now, Sequence: uint64(i + 1), Data: fill(t, info, text, raw, i),
				}
				for _, codec := range c.bound {
					c.encode(t, codec, e)
				}
			}
		}
	}
	for _, codec := range c.bound {
		require.Empty(t, codec.Encode(event.Event{Type: "something.new", Sequence: 1, Time: Now, Data: []byte(`{}`)}),
			"an event that a codec does not know is passed over")
	}
}

// encode checks all that is promised of Encode for one event with sane data.
func (c *checker) encode(t testing.TB, codec dialect.Codec, e event.Event) {
	t.Helper()
	for _, f := range codec.Encode(e) {
		c.frame(t, f)
		require.Equal(t, e.Sequence, seqOf(f), "%s", f)
	}
}

// fill returns the JSON data of a canonical type with the text in every string,
// except where only a token makes sense, and n in every number.
func fill(t testing.TB, info event.Info, text, raw string, n int) json.RawMessage {
	t.Helper()
	v := reflect.New(reflect.TypeOf(info.Data)).Elem()
	for f, field := range v.Fields() {
		switch {
		case f.Name == "ExecutionID":
			field.SetString("exec_20260301_120000_000001")
		case f.Name == "Code":
			field.SetString("TOOL_FAILED")
		case field.Type() == reflect.TypeFor[json.RawMessage]():
			field.SetBytes([]byte(raw))
		case field.Kind() == reflect.String:
			field.SetString(text)
		case field.CanInt():
			field.SetInt(int64(n))
		case field.Kind() == reflect.Bool:
			field.SetBool(n%2 == 1)
		}
	}
	data, err := json.Marshal(v.Interface())
	require.NoError(t, err)
	return data
}

// damage gives every codec events that no writer of this program makes. Frames may
// be missing, but what is there must be JSON text.
func (c *checker) damage(t *testing.T) {
	for _, info := range event.Catalogue {
		for _, data := range []string{``, `null`, `[]`, `{`, `{}`, `"x"`, `{"execution_id":1}`, `{"arguments":{"a":"` + "\xff" + `"}}`, `{"attempt":"x"}`} {
			c.encodeDamaged(t, event.Event{Type: info.Type, Sequence: 7, Time: Now, Data: []byte(data)})
		}
	}
}

func (c *checker) encodeDamaged(t testing.TB, e event.Event) {
	t.Helper()
	for _, codec := range c.bound {
		for _, f := range codec.Encode(e) {
			require.True(t, json.Valid(f) && utf8.Valid(f), "%q", f)
			require.Contains(t, c.Outbound, typeOf(f))
			require.Equal(t, e.Sequence, seqOf(f))
		}
	}
}
