import fc from "fast-check";
import { expect, test } from "vitest";
import { Lists, type Sink } from "../src/fold/lists.ts";

/** What a text becomes, written in pieces of these lengths, as nested brackets: "ol3[li[text]]". */
function shape(text: string, pieces: readonly number[] = [text.length]): string {
  let out = "";
  const open: string[] = [];
  let said = "";
  const flush = () => {
    const lines = said.replace(/^\n+|\n+$/g, "");
    if (lines !== "") out += `"${lines.replaceAll("\n", "⏎")}"`;
    said = "";
  };
  const sink: Sink = {
    list: (start) => {
      flush();
      out += start === undefined ? "ul[" : `ol${start}[`;
      open.push("list");
    },
    item: () => {
      flush();
      out += "li[";
      open.push("item");
    },
    box: (checked) => {
      out += checked ? "(x)" : "( )";
    },
    text: (t) => {
      said += t;
    },
    close: () => {
      flush();
      expect(open.pop()).toBeDefined();
      out += "]";
    },
  };
  const lists = new Lists(sink);
  for (let at = 0, n = 0; at < text.length; n++) {
    const size = Math.max(1, pieces[n % pieces.length] ?? 1);
    lists.write(text.slice(at, at + size));
    at += size;
  }
  lists.end();
  flush();
  expect(open).toEqual([]);
  return out;
}

const cases: Record<string, [text: string, shape: string]> = {
  "no list": ["# One\n\ntext\nmore\n", '"# One⏎⏎text⏎more"'],
  "paragraphs between items": ["1. title\n\n   text\n\n2. title\n\n   more", 'ol1[li["title⏎⏎text"]li["title⏎⏎more"]]'],
  "a fence in an item": ["1. run\n\n   ```sh\n   a\n     b\n   ```\n\n2. stop", 'ol1[li["run⏎⏎```sh⏎a⏎  b⏎```"]li["stop"]]'],
  "a fence with two columns": ["1. run\n  ```sh\n  a\n  ```\n2. stop", 'ol1[li["run⏎```sh⏎a⏎```"]li["stop"]]'],
  "code without indentation": ["1. run\n   ```sh\nnpm ci\n- x\n   ```\n2. stop", 'ol1[li["run⏎```sh⏎npm ci⏎- x⏎```"]li["stop"]]'],
  "code between items": ["1. run\n\n```sh\na\n```\n\n2. stop", 'ol1[li["run"]]"```sh⏎a⏎```"ol2[li["stop"]]'],
  "bullets with two columns": ["- a\n  - b\n    - c\n- d", 'ul[li["a"ul[li["b"ul[li["c"]]]]]li["d"]]'],
  "bullets with four columns": ["- a\n    - b\n        - c\n    - d\n- e", 'ul[li["a"ul[li["b"ul[li["c"]]]li["d"]]]li["e"]]'],
  "bullets with tabs": ["- a\n\t- b\n\t\t- c\n- d", 'ul[li["a"ul[li["b"ul[li["c"]]]]]li["d"]]'],
  "bullets below a number": ["1. a\n  - b\n  - c\n2. d\n   - e", 'ol1[li["a"ul[li["b"]li["c"]]]li["d"ul[li["e"]]]]'],
  "text after nested items": ["1. a\n   - b\n\n   text\n2. c", 'ol1[li["a"ul[li["b"]]"text"]li["c"]]'],
  "long numbers": ["9. a\n\n   x\n10. b\n\n    y\n11. c", 'ol9[li["a⏎⏎x"]li["b⏎⏎y"]li["c"]]'],
  "a list that begins later": ["3) a\n4) b", 'ol3[li["a"]li["b"]]'],
  "other signs": ["- a\n* b\n1. c\n1) d", 'ul[li["a"]]ul[li["b"]]ol1[li["c"]]ol1[li["d"]]'],
  "a lazy line": ["- a\nb\n- c", 'ul[li["a⏎b"]li["c"]]'],
  "a heading ends it": ["- a\n## B\n- c", 'ul[li["a"]]"## B"ul[li["c"]]'],
  "text ends it": ["- a\n\ntext\n", 'ul[li["a"]]"text"'],
  "a rule is no item": ["- a\n\n- - -\n\n***\n* * *", 'ul[li["a"]]"- - -⏎⏎***⏎* * *"'],
  "emphasis is no item": ["**a** b\n*c* d\n-e\n1.5 f", '"**a** b⏎*c* d⏎-e⏎1.5 f"'],
  "a number of the text": ["It was\n1986. Then\n", '"It was⏎1986\\. Then"'],
  "a list right after text": ["Do:\n1. a\n2. b", '"Do:"ol1[li["a"]li["b"]]'],
  boxes: ["- [ ] a\n- [x] b\n- [c](d)", 'ul[li[( )" a"]li[(x)" b"]li["[c](d)"]]'],
  "items in items": ["- 1. a\n  2. b\n-\n  c", 'ul[li[ol1[li["a"]li["b"]]]li["c"]]'],
  "quotes in items": ["- a\n\n  > b\n\n- c", 'ul[li["a⏎⏎> b"]li["c"]]'],
  "a table in an item": ["1. a\n\n   | x |\n   |---|\n   | 1 |\n2. b", 'ol1[li["a⏎⏎| x |⏎|---|⏎| 1 |"]li["b"]]'],
  "tabs of code stay": ["```make\n\tgo build\n```\n- a\n  ```\n  \tb\n  ```", '"```make⏎\tgo build⏎```"ul[li["a⏎```⏎\tb⏎```"]]'],
  "indented code": ["a\n\n    - b\n", '"a⏎⏎    - b"'],
};

for (const [name, [text, want]] of Object.entries(cases))
  test(`lists: ${name}`, () => {
    expect(shape(text)).toBe(want);
    expect(shape(text, [1])).toBe(want);
  });

const line = fc
  .tuple(
    fc.constantFrom("", " ", "  ", "   ", "    ", "\t"),
    fc.constantFrom("- ", "* ", "1. ", "2. ", "10) ", "- [ ] ", "", "", "```", "> ", "---", "# "),
    fc.constantFrom("", "a", "b c", "**d**"),
  )
  .map((parts) => parts.join(""));

test("a text becomes the same in whatever pieces it comes, and loses no word", () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }), (lines, pieces) => {
      const text = lines.join("\n");
      const whole = shape(text);
      expect(shape(text, pieces)).toBe(whole);
      const letters = (s: string) => s.replace(/ol\d+|ul|li/g, "").replace(/[^a-d]/g, "");
      expect(letters(whole)).toBe(letters(text));
    }),
    { numRuns: 1000 },
  );
});
