// Package hostile is a collection of JSON documents that must not fool a strict reader, for every test that feeds
// bytes from outside.
package hostile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Document is one case.
type Document struct {
	Name  string     // unique, <class>/<case>
	Body  []byte     //
	Legal bool       // strictjson.Check accepts it; a reader may still refuse its contents
	Code  fault.Code // fault of strictjson.Check; empty if Legal
}

// The bounds of strictjson.Default, which the corpus tests from both sides. They are repeated here, so that the
// corpus notices when the bounds move.
const (
	depth  = 32
	tokens = 10_000
	digits = 64
)

func legal(class, name, body string) Document {
	return Document{Name: class + "/" + name, Body: []byte(body), Legal: true}
}

func bad(class, name, body string) Document {
	return Document{Name: class + "/" + name, Body: []byte(body), Code: fault.BadJSON}
}

func badUTF8(class, name, body string) Document {
	return Document{Name: class + "/" + name, Body: []byte(body), Code: fault.BadUTF8}
}

// table makes one document of each body, numbered from 1.
func table(class, name string, kind func(class, name, body string) Document, bodies ...string) []Document {
	out := make([]Document, len(bodies))
	for i, b := range bodies {
		out[i] = kind(class, fmt.Sprintf("%s-%02d", name, i+1), b)
	}
	return out
}

// message wraps a string literal, quotes included, in a message that a dialect would accept.
func message(literal string) string { return `{"type":"user_message","content":` + literal + `}` }

func text(s string) string { return message(`"` + s + `"`) }

// duplicates are names that occur twice in one object, however they are escaped.
func duplicates() []Document {
	const class = "duplicate"
	out := table(class, "same-object", bad,
		`{"type":"user_message","type":"user_message","content":"a"}`,
		`{"type":"ping","type":"user_message","content":"a"}`,
		`{"type":"user_message","content":"a","content":"b"}`,
		`{"type":"user_message","content":"a","\u0063ontent":"b"}`,
		`{"\u0074ype":"a","\u0074\u0079pe":"b"}`,
		`{"":1,"":2}`,
		`{"a":1,"a":1}`,
		`{"a":null,"a":null}`,
		`{"a":{},"a":{}}`,
		`{"\u00e9":1,"é":2}`,
		`{"\u00E9":1,"\u00e9":2}`,
		`{"😀":1,"\ud83d\ude00":2}`,
		`{"\/":1,"/":2}`,
		`{"\n":1,"\u000a":2}`,
		`{"\u0000":1,"\u0000":2}`,
		`{"a\u0000":1,"a\u0000":2}`,
		`{"__proto__":1,"__proto__":{}}`,
		`[{"a":1},{"a":1,"a":2}]`,
		`{"x":{"a":1},"y":{"a":1,"b":2,"a":3}}`,
		`{"a":1,"b":{"c":[{"d":1,"d":2}]}}`,
		`{"a":{"a":{"a":1}},"a":2}`,
	)
	for n := 2; n <= depth; n += 3 {
		body := strings.Repeat(`{"a":`, n-1) + `{"b":1,"b":2}` + strings.Repeat("}", n-1)
		out = append(out, bad(class, fmt.Sprintf("depth-%02d", n), body))
	}
	// Readers that keep few names in a list and many in a map differ here.
	for _, n := range []int{16, 63, 64, 65, 1000} {
		out = append(out,
			bad(class, fmt.Sprintf("first-of-%d", n), wide(n, `"n0":0`)),
			bad(class, fmt.Sprintf("last-of-%d", n), wide(n, fmt.Sprintf(`"n%d":0`, n-1))))
	}
	return append(out,
		legal(class, "not-siblings", `{"a":{"a":{"a":1}},"b":{"a":1},"c":[{"a":1},{"a":2}]}`),
		legal(class, "not-normalised", "{\"\u00e9\":1,\"e\u0301\":2}"),
		legal(class, "no-repeat-of-1000", wide(1000, `"last":0`)))
}

// wide returns an object of n distinct members and one more.
func wide(n int, last string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		fmt.Fprintf(&b, `"n%d":%d,`, i, i)
	}
	return b.String() + last + "}"
}

// cases are names that only a reader that ignores case matches to known ones. U+017F folds to s and U+212A to k.
func cases() []Document {
	return table("case", "name", legal,
		`{"Type":"user_message","content":"a"}`,
		`{"TYPE":"user_message","content":"a"}`,
		`{"tYPE":"user_message","content":"a"}`,
		`{"type":"user_message","Content":"a"}`,
		`{"type":"user_message","CONTENT":"a"}`,
		`{"type":"user_message","content":"a","Content":"b"}`,
		`{"Content":"b","type":"user_message","content":"a"}`,
		`{"type":"ping","Type":"user_message","content":"a"}`,
		`{"type":"user_message","data":{"Content":"a"}}`,
		`{"type":"user_message","Data":{"content":"a"}}`,
		"{\"type\":\"user_message\",\"content\":\"a\",\"\u017fession_id\":\"x\"}",
		"{\"type\":\"user_message\",\"content\":\"a\",\"to\u212aen\":\"x\"}",
		`{"type":"user_message","content":"a","Id":"x","ID":"y","iD":"z"}`,
		`{"type ":"user_message","content":"a"}`,
		`{" type":"user_message","content":"a"}`,
		`{"type\u0000":"user_message","content":"a"}`,
	)
}

// harmless are documents that look bad and are valid.
func harmless() []Document {
	return slices.Concat(
		table("harmless", "scalar", legal, `null`, `true`, `0`, `""`, `[]`, `{}`, "\n\t\r {} \n\t\r "),
		table("harmless", "name", legal,
			`{"":0}`, `{"__proto__":{"admin":true}}`, `{"constructor":{"prototype":{}}}`, `{"toString":null}`,
			`{"$ref":"#/a"}`, `{"a.b":1,"a":{"b":2}}`, `{"*":1,">":2,"$JS.API":3}`,
			`{"`+strings.Repeat("n", 4096)+`":1}`),
		table("harmless", "text", legal,
			text(`\"\\\/\b\f\n\r\t`), text(`\u0000`), text(`\u001b[31m`), text("\u2028\u2029"), text("\ufeff"),
			text("\u202eabc"), text("\x7f"), text("\ufdd0\uffff\U0010ffff"), text("\ufffd"), text("e"+strings.Repeat("\u0301", 40)),
			text("<script>alert(1)</script>"), text(`%00%0d%0a`), text(strings.Repeat("a", 64<<10))),
	)
}
