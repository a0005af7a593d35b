package dialecttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// hostile feeds every codec documents that no friendly client sends. Each must give
// a fault or commands for the socket's own session, and whether it does must agree
// with the schema of its type.
func (c *checker) hostile(t *testing.T) {
	docs := hostileDocuments(c.Inbound)
	require.Greater(t, len(docs), 300)
	for _, codec := range c.bound {
		for _, doc := range docs {
			c.decode(t, codec, []byte(doc))
		}
	}
}

// decode checks all that is promised of Decode for one document.
func (c *checker) decode(t testing.TB, codec dialect.Codec, doc []byte) {
	t.Helper()
	kept := string(doc)
	cmds, err := codec.Decode(doc, inbound())
	require.Equal(t, kept, string(doc), "Decode must not change the frame")
	for _, cmd := range cmds {
		requireAddressed(t, cmd)
	}
	if err != nil {
		require.Empty(t, cmds, "%.200q: a fault means that nothing was asked", doc)
		f, ok := errors.AsType[*fault.Fault](err)
		require.True(t, ok, "%.200q: an error of Decode is a fault, not %T", doc, err)
		require.NotEqual(t, fault.Internal, f.Code, "%.200q: a client's mistake is not ours", doc)
		reply := codec.Fail(f, Now)
		c.frame(t, reply)
		require.Less(t, len(reply), 1024, "a refusal must not quote the whole message")
	}
	if kind := typeOf(doc); slices.Contains(c.Inbound, kind) {
		fits := c.schemas.check(kind, doc)
		require.Equal(t, fits == nil, err == nil, "%.200q: schema says %v, codec says %v", doc, fits, err)
	}
}

// values are JSON values of every kind, with the ones that programs trip over.
var values = []string{
	`null`, `true`, `false`, `0`, `-0`, `1e308`, `1e999`, `123456789012345678901234567890`, `0.1`,
	`""`, `" "`, `"\t\n\r"`, `"\u00a0\u2003"`, `"x"`, `"\u0000"`, `"\u202e\u2066abc"`, `"\ud83d\ude00"`,
	`"\"\\\/\b\f"`, `"<script>&amp;"`, `"$JS.API.>"`, `"_INBOX.x"`, `"evt.00.default.session.s1"`, `"*"`, `">"`,
	`"a.b.c"`, `"../../etc/passwd"`, `"h_abc"`, `"exec_20260301_120000_000000"`, `"\r\nNats-Msg-Id: x"`,
	`[]`, `[1]`, `["x"]`, `{}`, `{"content":"x"}`, `{"content":1}`, `{"content":null}`, `{"":""}`, `{"Content":"x"}`,
	`"` + strings.Repeat("a", 10_240) + `"`, `"` + strings.Repeat("é", 129) + `"`,
	strings.Repeat("[", 31) + strings.Repeat("]", 31), strings.Repeat(`{"a":`, 31) + `1` + strings.Repeat("}", 31),
}

// hostileDocuments returns every value as a whole message, as a type, and as each
// member that messages of the given types may have.
func hostileDocuments(types []string) []string {
	docs := slices.Clone(values)
	docs = append(docs, ``, ` `, "\n", `{`, `}`, `{"type"`, `{"type":}`, `{"type":"x"`, `nul`, `"`, `{"type":"x"}{}`, "\x00", "\xff\xfe",
		`{"type":"user_message","content":"x"}`+"\n"+`{"type":"cancel"}`, `{"type":"x","type":"y"}`, "\ufeff{}", "{\"type\":\"\xff\"}")
	for _, v := range values {
		docs = append(docs, fmt.Sprintf(`{"type":%s}`, v), fmt.Sprintf(`{"TYPE":%s}`, v))
	}
	for _, kind := range types {
		docs = append(docs, fmt.Sprintf(`{"type":%q}`, kind), fmt.Sprintf(`{"Type":%q}`, kind), fmt.Sprintf(`{"type":"%s "}`, kind),
			fmt.Sprintf(`{"type":%q}`, strings.ToUpper(kind)), fmt.Sprintf(`[{"type":%q}]`, kind))
		for _, member := range []string{"content", "Content", "data", "id", "timestamp", "execution_id", "session", "tenant", "principal", "seq", "__proto__"} {
			for _, v := range values {
				docs = append(docs, fmt.Sprintf(`{"type":%q,%q:%s}`, kind, member, v),
					fmt.Sprintf(`{"type":%q,"content":"hi",%q:%s}`, kind, member+"2", v),
					fmt.Sprintf(`{%q:%s,"type":%q,"data":{"content":"hi"}}`, member, v, kind))
			}
		}
	}
	return docs
}
