package hostile

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// sequences are byte sequences that are not UTF-8.
var sequences = []struct{ name, bytes string }{
	{"continuation-80", "\x80"},
	{"continuation-bf", "\xbf"},
	{"two-continuations", "\x80\xbf"},
	{"overlong-nul", "\xc0\x80"},
	{"overlong-quote", "\xc0\xa2"},
	{"overlong-slash", "\xc1\xaf"},
	{"overlong-3", "\xe0\x80\xaf"},
	{"overlong-3-max", "\xe0\x9f\xbf"},
	{"overlong-4", "\xf0\x80\x80\xaf"},
	{"overlong-4-max", "\xf0\x8f\xbf\xbf"},
	{"surrogate-high", "\xed\xa0\x80"},
	{"surrogate-low", "\xed\xbf\xbf"},
	{"surrogate-pair", "\xed\xa0\xbd\xed\xb8\x80"},
	{"beyond-unicode", "\xf4\x90\x80\x80"},
	{"lead-f5", "\xf5\x80\x80\x80"},
	{"five-bytes", "\xf8\x88\x80\x80\x80"},
	{"six-bytes", "\xfc\x84\x80\x80\x80\x80"},
	{"fe", "\xfe"},
	{"ff", "\xff"},
	{"cut-2", "\xc3"},
	{"cut-3", "\xe2\x82"},
	{"cut-4", "\xf0\x9f\x98"},
	{"latin-1", "caf\xe9"},
}

// invalidUTF8 are texts with bytes that are not UTF-8, in values, names and elsewhere.
func invalidUTF8() []Document {
	const class = "utf8"
	var out []Document
	for _, s := range sequences {
		out = append(out, badUTF8(class, s.name, text("a"+s.bytes)))
	}
	return append(out,
		badUTF8(class, "first-in-string", text("\xffa")),
		badUTF8(class, "in-name", "{\"a\xff\":1}"),
		badUTF8(class, "two-names-alike-after-repair", "{\"a\xff\":1,\"a\xfe\":2}"),
		badUTF8(class, "before", "\xff{}"),
		badUTF8(class, "after", "{}\xff"),
		badUTF8(class, "as-space", "{\xa0}"),
		badUTF8(class, "alone", "\xff"),
		badUTF8(class, "after-escape", text("\\\xff")),
		badUTF8(class, "in-hex", text("\\u00\xff0")),
		badUTF8(class, "far-inside", text(strings.Repeat("é", 5000)+"\xc3")),
		badUTF8(class, "also-not-json", "{\"a\":\xff"),
		legal(class, "longest-of-each-length", text("\x7f\u07ff\uffff\U0010ffff")),
		legal(class, "shortest-of-each-length", text("\\u0000\u0080\u0800\U00010000")),
	)
}

// surrogates are escapes of half a character.
func surrogates() []Document {
	const class = "surrogate"
	return slices.Concat(
		table(class, "lone", bad,
			text(`\ud800`), text(`\uD800`), text(`\udbff`), text(`\udc00`), text(`\udfff`),
			text(`a\ud83d`), text(`\ud83da`), text(`\ud83d\u0061`), text(`\ud83d\n`), text(`\ud83d\ud83d`),
			text(`\ude00\ud83d`), text(`\ud83d\ud83d\ude00`), text(`\ud83d\ude00\ude00`), text(`\ud83d \ude00`),
			text(`\ud83d\\ude00`), text(`\ud83d😀`),
			`{"\ud800":1}`, `{"\ud800":1,"\ud801":2}`, `["\udead"]`, `"\ud800"`),
		table(class, "cut", bad, text(`\ud83d\u`), text(`\ud83d\ude`), text(`\ud83d\ude0`), `"\ud83d\ude00`),
		table(class, "pair", legal, text(`\ud83d\ude00`), text(`\uD83D\uDE00`), text(`\udbff\udfff`), text(`\ud800\udc00`)),
	)
}

// controls are control characters, which must be escaped within strings and do not count as white space outside.
func controls() []Document {
	const class = "control"
	var out []Document
	for c := range rune(0x20) {
		out = append(out, bad(class, fmt.Sprintf("raw-%02x", c), text("a"+string(c)+"b")))
	}
	return slices.Concat(out, table(class, "outside", bad,
		"\x00{}", "{\x00}", "{}\x00", "\x0b{}", "{}\x0c", "\x1b{}", "{\"a\":\x001}", "[1,\x0b2]", "{\"a\x00\":1}", "\x00"))
}

// encodings are documents that are not UTF-8 without a byte order mark.
func encodings() []Document {
	const class = "encoding"
	doc := `{"type":"user_message","content":"a"}`
	le, be := utf16Bytes(doc)
	return []Document{
		bad(class, "utf-8-bom", "\ufeff"+doc),
		bad(class, "utf-8-bom-after", doc+"\ufeff"),
		bad(class, "utf-8-bom-alone", "\ufeff"),
		bad(class, "utf-16-le", le),
		bad(class, "utf-16-be", be),
		badUTF8(class, "utf-16-le-bom", "\xff\xfe"+le),
		badUTF8(class, "utf-16-be-bom", "\xfe\xff"+be),
		bad(class, "utf-32-be", "\x00\x00\x00{\x00\x00\x00}"),
		bad(class, "base64", "eyJ0eXBlIjoidXNlcl9tZXNzYWdlIn0="),
		bad(class, "url", "type=user_message&content=a"),
		bad(class, "cbor", "\x19\x01\x00"),
		badUTF8(class, "cbor-map", "\xa1\x61a\x01"),
		badUTF8(class, "gzip", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"),
		bad(class, "html", "<!doctype html><p>no</p>"),
		bad(class, "http", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	}
}

func utf16Bytes(s string) (le, be string) {
	var l, b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		high, low := byte(u>>8), byte(u&0xff)
		l.Write([]byte{low, high})
		b.Write([]byte{high, low})
	}
	return l.String(), b.String()
}
