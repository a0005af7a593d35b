// Package hostile generates strings that try to be more than one subject token. It is for tests only.
package hostile

import (
	"math/rand/v2"
	"strings"
)

// Samples are the most obvious attempts.
var Samples = []string{
	"", " ", ".", "..", "*", ">", "a.b", "a.>", "a.*", "*.b", ".a", "a.", "a b", "a\tb", "a\nb", "a\r\nb", "\x00", "a\x00b",
	"$JS.API.STREAM.DELETE.EVT_00", "$JS", "$SYS.>", "$KV.directory.x", "_INBOX.abc", "_INBOX", "_R_", "evt.00.default.session.x",
	"live.>", "cmd.session.00.t.k.v", "é", "ÅÄÖ", "\u202eabc", "\u2066a\u2069", "a\u200bb", "\ufeffx", "e\u0301", "\U0001F41D",
	"\xff\xfe", "\xed\xa0\x80", "a/b", `a\b`, "a:b", "a=b", "../x", "%2e", "h_", "h_x", "H_X", "-", "_", "--", "0", "s1",
	strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("a", 128), strings.Repeat("a", 129),
	strings.Repeat("a", 10_240), strings.Repeat(".", 10_240), strings.Repeat("é", 64),
	"0199c3d2-41f0-7a53-8e0b-5d1c9a7e2f10", "'; DROP TABLE x", "<script>", "${jndi:ldap://x}", "{{.}}", "Nats-Msg-Id: 1",
}

// pieces are joined at random: some harmless, some not.
var pieces = []string{
	"a", "Z", "9", "_", "-", "abc", ".", "*", ">", " ", "\t", "\n", "\r", "\x00", "$JS", "_INBOX", "h_", "é", "\u202e", "\u2066",
	"\u200b", "\xff", "\xc0\x80", ":", "/", "\\", "\"", "\U0001F41D", "default", "session", "evt",
}

// Strings calls visit with Samples and then with n more, the same ones for a seed.
func Strings(seed uint64, n int, visit func(string)) {
	for _, s := range Samples {
		visit(s)
	}
	r := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // Repeatable, not secret.
	for range n {
		visit(one(r))
	}
}

func one(r *rand.Rand) string {
	switch r.IntN(8) {
	case 0: // raw bytes
		b := make([]byte, r.IntN(20))
		for i := range b {
			b[i] = anyByte(r)
		}
		return string(b)
	case 1, 2: // a legal token
		return token(r, 1+r.IntN(40))
	case 3: // a legal token with one byte changed
		b := []byte(token(r, 1+r.IntN(40)))
		b[r.IntN(len(b))] = anyByte(r)
		return string(b)
	}
	var b strings.Builder
	for range 1 + r.IntN(8) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

func anyByte(r *rand.Rand) byte {
	return byte(r.UintN(256)) //nolint:gosec // It is below 256.
}

func token(r *rand.Rand, n int) string {
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}
