package hostile

import (
	"fmt"
	"slices"
	"strings"
)

// numbers are invalid numbers, and numbers around the length limit.
func numbers() []Document {
	const class = "number"
	nine := strings.Repeat("9", digits)
	return slices.Concat(
		table(class, "malformed", bad,
			message(`01`), message(`-01`), message(`00`), message(`+1`), message(`.5`), message(`5.`), message(`-.5`),
			message(`1e`), message(`1e+`), message(`1e1.5`), message(`1.e5`), message(`0x10`), message(`0b1`), message(`0o7`),
			message(`1_000`), message(`1,000`), message(`NaN`), message(`-NaN`), message(`Infinity`), message(`-Infinity`), message(`inf`),
			message(`-`), message(`--1`), message(`- 1`), message(`1-`), message(`1 2`), message("١"), message("\uff11"),
			message(`1f`), message(`1n`), message(`1.2.3`), message(`1e5e5`)),
		table(class, "too-long", bad,
			message(nine+"9"), message("-"+nine), message("0."+nine), message("1e"+nine),
			message(strings.Repeat("1", 1000)), message(strings.Repeat("1", 100_000)), nine+"9", "["+nine+"9]"),
		table(class, "long", legal,
			message(nine), message("-"+nine[1:]), message("0."+nine[2:]), nine),
		table(class, "extreme", legal,
			message(`-0`), message(`0e0`), message(`1E+2`), message(`1e400`), message(`-1e-400`), message(`9007199254740993`),
			message(`18446744073709551616`), message(`1e999999999`), message(`0.1e-7`)),
	)
}

// depths are documents around and far beyond the nesting limit.
func depths() []Document {
	const class = "depth"
	nest := func(open, inside, shut string, n int) string {
		return strings.Repeat(open, n) + inside + strings.Repeat(shut, n)
	}
	return []Document{
		legal(class, "arrays-at-limit", nest("[", "", "]", depth)),
		legal(class, "objects-at-limit", nest(`{"a":`, "1", "}", depth)),
		legal(class, "mixed-at-limit", nest(`{"a":[`, "1", "]}", depth/2)),
		legal(class, "up-and-down", "["+nest("[", "", "]", depth-1)+","+nest("[", "", "]", depth-1)+"]"),
		bad(class, "arrays-beyond", nest("[", "", "]", depth+1)),
		bad(class, "objects-beyond", nest(`{"a":`, "1", "}", depth+1)),
		bad(class, "mixed-beyond", nest(`{"a":[`, "1", "]}", depth/2+1)),
		bad(class, "in-message", message(nest("[", "", "]", depth))),
		bad(class, "arrays-1000", nest("[", "", "]", 1000)),
		bad(class, "objects-10000", nest(`{"a":`, "1", "}", 10_000)),
		bad(class, "arrays-100000", nest("[", "", "]", 100_000)),
		bad(class, "open-only-32", strings.Repeat("[", depth)),
		bad(class, "open-only-100000", strings.Repeat("[", 100_000)),
		bad(class, "open-objects-20000", strings.Repeat(`{"a":`, 20_000)),
		bad(class, "close-only", strings.Repeat("]", 1000)),
		bad(class, "with-spaces", strings.Repeat("[ \n", 10_000)),
	}
}

// widths are documents around and far beyond the token limit.
func widths() []Document {
	const class = "width"
	array := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("0,", n), ",") + "]" }
	return []Document{
		legal(class, "array-at-limit", array(tokens-2)),
		bad(class, "array-beyond", array(tokens-1)),
		bad(class, "array-100000", array(100_000)),
		legal(class, "object-at-limit", wide(tokens/2-2, `"last":0`)),
		bad(class, "object-beyond", wide(tokens/2-1, `"last":0`)),
		bad(class, "empty-arrays", "["+strings.Repeat("[],", 50_000)+"0]"),
		bad(class, "empty-strings", "["+strings.Repeat(`"",`, 50_000)+"0]"),
		legal(class, "spaces", "{"+strings.Repeat(" ", 100_000)+"}"),
	}
}

// trailing are documents with text after them.
func trailing() []Document {
	return table("trailing", "data", bad,
		`{}{}`, `{} {}`, "{}\n{}", `{},`, `{};`, `{}]`, `{}}`, `{}x`, `{} null`, `{} // end`, `{}/* end */`, `{}#`,
		`null null`, `1 1`, `truefalse`, `"a""b"`, `[][]`, `[1]2`, `{}0`, `{}"`,
		`{"type":"ping"}{"type":"user_message","content":"a"}`)
}

// sample has one of everything.
const sample = `{"type":"user_message","n":[-1.5e3,true,null,{}],"content":"a\u00e9\ud83d\ude00b"}`

// truncated are all proper prefixes of a message, the empty one included.
func truncated() []Document {
	out := make([]Document, 0, len(sample))
	for n := range len(sample) {
		out = append(out, bad("truncated", fmt.Sprintf("at-%02d", n), sample[:n]))
	}
	return out
}

// syntax are habits of other notations.
func syntax() []Document {
	const class = "syntax"
	return slices.Concat(
		table(class, "structure", bad,
			`{"a":1,}`, `[1,]`, `[,1]`, `{,}`, `[,]`, `{"a":1,,"b":2}`, `[1,,2]`, `[1 2]`, `{"a" 1}`, `{"a":}`, `{:1}`, `{"a"}`,
			`{"a":1:2}`, `{"a":1]`, `[1}`, `{"a","b"}`, `[:]`, `,`, `:`, `}`, `{{}}`, `{[]}`, `{"a":1 "b":2}`, `   `, "\n"),
		table(class, "name", bad, `{a:1}`, `{'a':1}`, `{1:1}`, `{null:1}`, `{true:1}`, `{[]:1}`, `{{}:1}`, "{`a`:1}"),
		table(class, "literal", bad,
			`True`, `FALSE`, `Null`, `nul`, `nulll`, `tru`, `undefined`, `None`, `nil`, `yes`, `a`, `'a'`, "`a`", `"a`, `a"`),
		table(class, "escape", bad,
			text(`\a`), text(`\x41`), text(`\'`), text(`\0`), text(`\U00000041`), text(`\u12`), text(`\u12G4`), text(`\u+123`),
			text(`\u{41}`), text(`\ `), text(`\`), text("\\\n"), text(`\u 041`), text(`\N`)),
		table(class, "comment", bad, `/**/{}`, `// c`+"\n{}", `{/**/}`, `{"a":/**/1}`, `#!/bin/sh`, `{"a":1 -- c`+"\n}"),
		table(class, "space", bad, "\u00a0{}", "{\u2003}", "{}\u2028", "\u3000[]", "[\u200b]", "\u0085{}"),
	)
}

// Documents returns all cases, always the same ones in the same order. The caller owns them.
func Documents() []Document {
	return slices.Concat(
		duplicates(), cases(), invalidUTF8(), surrogates(), numbers(), depths(), widths(),
		controls(), encodings(), trailing(), truncated(), syntax(), harmless(),
	)
}
