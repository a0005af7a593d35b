package dialecttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// hostile feeds the codec documents that no friendly client sends. Each must give a fault or
// intents, and whether it does must agree with the schema of its type. The variants take
// turns: each document goes to one of them as well, which must say the same.
func (c *checker) hostile(t *testing.T) {
	docs := thin(hostileTo(t, c.Kind, c.Inbound, c.accepted(t)), enough)
	require.Greater(t, len(docs), 300)
	for i, doc := range docs {
		err := c.decode(t, c.bound[0], []byte(doc))
		if len(c.bound) == 1 {
			continue
		}
		if _, _, same := c.ask(t, c.bound[1+i%(len(c.bound)-1)], []byte(doc), c.inbound()); !reflect.DeepEqual(err, same) {
			require.Equal(t, err, same, "%.200q: variants differ in what they send, not in what they take", doc)
		}
	}
	for _, codec := range c.bound {
		for _, doc := range c.Accepted {
			_, _, err := c.ask(t, codec, []byte(doc), c.inbound())
			require.NoError(t, err, "%s", doc)
		}
	}
}

// enough is how many hostile documents are tried at most: what takes a few seconds with
// the race detector. A fuzzer goes further.
const enough = 4000

// thin makes about most of the documents, the same ones every time, with documents of every
// kind: the step has no factor in common with the number of values.
func thin(each func(emit func(doc func() string)), most int) []string {
	n := 0
	each(func(func() string) { n++ })
	step := n/most + 1
	for len(values)%step == 0 && step > 1 {
		step++
	}
	var out []string
	n = 0
	each(func(doc func() string) {
		if n%step == 0 {
			out = append(out, doc())
		}
		n++
	})
	return out
}

// hostileTo returns what emits the hostile documents, and the accepted ones with each of
// their members, however deep, taken out and replaced by each value. A document is made when
// it is asked for, before the next is emitted.
func hostileTo(t testing.TB, kind string, types, accepted []string) func(emit func(doc func() string)) {
	plain := hostileDocuments(kind, types)
	return func(emit func(doc func() string)) {
		for _, doc := range plain {
			emit(func() string { return doc })
		}
		for _, doc := range accepted {
			var v any
			require.NoError(t, json.Unmarshal([]byte(doc), &v))
			mutate(v, func(changed any) { v = changed }, func() {
				emit(func() string {
					b, err := json.Marshal(v)
					require.NoError(t, err)
					return string(b)
				})
			})
		}
	}
}

// MaxRefusal bounds a frame that refuses another one, in bytes: it quotes a field and
// a value of it, not the whole message.
const MaxRefusal = 1024

// decode checks all that is promised of Request and Decode for one document, and returns
// the fault.
func (c *checker) decode(t testing.TB, codec dialect.Codec, doc []byte) error {
	t.Helper()
	kept := string(doc)
	_, intents, err := c.ask(t, codec, doc, c.inbound())
	if kept != string(doc) {
		require.Equal(t, kept, string(doc), "Decode must not change the frame")
	}
	for _, i := range intents {
		Sound(t, i)
	}
	if err != nil {
		require.Empty(t, intents, "%.200q: a fault means that nothing was asked", doc)
		f, ok := errors.AsType[*fault.Fault](err)
		require.True(t, ok, "%.200q: an error of Decode is a fault, not %T", doc, err)
		require.NotEqual(t, fault.Internal, f.Code, "%.200q: a client's mistake is not ours", doc)
		reply := c.refusal(codec, doc, f)
		c.frame(t, reply)
		require.Less(t, len(reply), MaxRefusal, "a refusal must not quote the whole message: %s", reply)
	}
	if kind := c.typeOf(doc); slices.Contains(c.Inbound, kind) && strictjson.Check(doc) == nil {
		fits := c.schemas.check(kind, doc)
		if f, ok := errors.AsType[*fault.Fault](err); ok && fits == nil && slices.Contains(c.Beyond, f.Field) {
			return err
		}
		require.Equal(t, fits == nil, err == nil, "%.200q: schema says %v, codec says %v", doc, fits, err)
	}
	return err
}

// ask does what a gateway does with a frame: it does itself what is asked of it, or decodes the frame.
func (c *checker) ask(t testing.TB, codec dialect.Codec, doc []byte, in dialect.Inbound) (asked string, intents []dialect.Intent, err error) {
	t.Helper()
	if c.Asks != nil {
		if asked, err = c.Asks(t, codec, doc); err != nil || asked != "" {
			return asked, nil, err
		}
	}
	intents, err = codec.Decode(doc, in)
	return "", intents, err
}

// values are JSON values of every kind, with the ones that programs trip over.
var values = []string{
	`null`, `true`, `false`, `0`, `-0`, `1`, `-1`, `3.0`, `30e-1`, `101`, `86401`, `9007199254740992`, `1e308`, `1e999`,
	`123456789012345678901234567890`, `0.1`,
	`""`, `" "`, `"\t\n\r"`, `"\u00a0\u2003"`, `"x"`, `"\u0000"`, `"\u202e\u2066abc"`, `"\ud83d\ude00"`,
	`"\"\\\/\b\f"`, `"<script>&amp;"`, `"$JS.API.>"`, `"_INBOX.x"`, `"evt.00.default.session.s1"`, `"*"`, `">"`,
	`"a.b.c"`, `"../../etc/passwd"`, `"h_abc"`, `"exec_20260301_120000_000000"`, `"\r\nNats-Msg-Id: x"`, `"12.34"`, `"012"`,
	`[]`, `[1]`, `["x"]`, `[null]`, `[{}]`, `{}`, `{"content":"x"}`, `{"content":1}`, `{"content":null}`, `{"":""}`, `{"Content":"x"}`,
	`"` + strings.Repeat("a", 10_240) + `"`, `"` + strings.Repeat("é", 129) + `"`, `"` + strings.Repeat(`\u0000`, 200) + `"`,
	strings.Repeat("[", 31) + strings.Repeat("]", 31), strings.Repeat(`{"a":`, 31) + `1` + strings.Repeat("}", 31),
}

// hostileDocuments returns every value as a whole message, as a type, and as each
// member that messages of the given types may have. The type is in the member named by kind.
func hostileDocuments(member string, types []string) []string {
	docs := slices.Clone(values)
	docs = append(docs, ``, ` `, "\n", `{`, `}`, `{"type"`, `{"type":}`, `{"type":"x"`, `nul`, `"`, `{"type":"x"}{}`, "\x00", "\xff\xfe",
		`{"type":"user_message","content":"x"}`+"\n"+`{"type":"cancel"}`, `{"type":"x","type":"y"}`, "\ufeff{}", "{\"type\":\"\xff\"}")
	for _, v := range values {
		docs = append(docs, fmt.Sprintf(`{%q:%s}`, member, v), fmt.Sprintf(`{%q:%s}`, strings.ToUpper(member), v))
	}
	for _, kind := range types {
		docs = append(docs, fmt.Sprintf(`{%q:%q}`, member, kind), fmt.Sprintf(`{"Type":%q}`, kind), fmt.Sprintf(`{%q:"%s "}`, member, kind),
			fmt.Sprintf(`{%q:%q}`, member, strings.ToUpper(kind)), fmt.Sprintf(`[{%q:%q}]`, member, kind))
		for _, name := range []string{"content", "Content", "data", "id", "timestamp", "execution_id", "session", "tenant", "principal", "seq", "__proto__"} {
			for _, v := range values {
				docs = append(docs, fmt.Sprintf(`{%q:%q,%q:%s}`, member, kind, name, v),
					fmt.Sprintf(`{%q:%q,"content":"hi",%q:%s}`, member, kind, name+"2", v),
					fmt.Sprintf(`{%q:%s,%q:%q,"data":{"content":"hi"}}`, name, v, member, kind))
			}
		}
	}
	return docs
}

// accepted are the frames that the suite knows to be accepted.
func (c *checker) accepted(t testing.TB) []string {
	t.Helper()
	out := slices.Clone(c.Accepted)
	entries, err := fs.ReadDir(c.Examples, ".")
	require.NoError(t, err)
	for _, e := range entries {
		raw, err := fs.ReadFile(c.Examples, e.Name())
		require.NoError(t, err)
		if slices.Contains(c.Inbound, c.typeOf(raw)) {
			out = append(out, string(raw))
		}
	}
	return out
}

// mutate changes v, which put stores in its place, to each value and calls emit each
// time; then it does so with all that v has inside. v is the same again afterwards.
func mutate(v any, put func(any), emit func()) {
	for _, raw := range values {
		put(json.RawMessage(raw))
		emit()
	}
	put(v)
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inner := v[name]
			delete(v, name)
			emit()
			mutate(inner, func(changed any) { v[name] = changed }, emit)
		}
	case []any:
		for i, inner := range v {
			mutate(inner, func(changed any) { v[i] = changed }, emit)
		}
	}
}
