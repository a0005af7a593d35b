import fc from "fast-check";
import { expect, test } from "vitest";
import { Colours } from "../src/fold/colours.ts";

const languages = [
  "go",
  "ts",
  "python",
  "json",
  "yaml",
  "sh",
  "sql",
  "html",
  "css",
  "diff",
  "rust",
  "toml",
  "ruby",
  "c",
  "Dockerfile",
  "none",
  "",
];

/** A code with the pieces that have a colour in brackets. */
function shown(language: string, code: string): string {
  const colours = new Colours(language);
  return code
    .split("\n")
    .map((line) =>
      colours
        .line(line)
        .map((p) => (p.kind === "" ? p.text : `[${p.kind} ${p.text}]`))
        .join(""),
    )
    .join("\n");
}

test.each([
  [
    "go",
    'func add(a, b int) int { // "x"\n\treturn `a\nb` + 0x1f',
    '[keyword func] [name add](a, b [keyword int]) [keyword int] { [comment // "x"]\n\t[keyword return] [string `a]\n[string b`] + [number 0x1f]',
  ],
  [
    "python",
    'def f():\n    """Says\n    it."""\n    return "a\\"b" # one',
    '[keyword def] [name f]():\n    [string """Says]\n[string     it."""]\n    [keyword return] [string "a\\"b"] [comment # one]',
  ],
  [
    "ts",
    "const x = a.b2(1.5e3); /* one\ntwo */ let",
    "[keyword const] x = a.[name b2]([number 1.5e3]); [comment /* one]\n[comment two */] [keyword let]",
  ],
  ["json", '{"a": "b", "c": [1, true]}', '{[name "a"]: [string "b"], [name "c"]: [[number 1], [keyword true]]}'],
  ["yaml", "a.b: true # yes\n- c: 'it''s'", "[name a.b]: [keyword true] [comment # yes]\n- [name c]: [string 'it''s']"],
  ["sh", 'export A="$B" # c\necho a#b $HOME', '[keyword export] A=[string "$B"] [comment # c]\necho a#b [name $HOME]'],
  ["SQL", "Select 'it''s' -- x", "[keyword Select] [string 'it''s'] [comment -- x]"],
  [
    "html",
    '<a href="x">b</a><!-- c\nd -->',
    '[keyword <a] [name href]=[string "x"][keyword >]b[keyword </a>][comment <!-- c]\n[comment d -->]',
  ],
  ["diff", "@@ 1 @@\n+a\n-b\n c", "[keyword @@ 1 @@]\n[added +a]\n[removed -b]\n c"],
  ["unheard of", "func 1 // x", "func 1 // x"],
])("code in %s has its colours", (language, code, want) => {
  expect(shown(language, code)).toBe(want);
});

test("no character is lost or changed, whatever the code is and in whatever language", () => {
  const sign = fc.constantFrom(
    ..."\"'`\\/*#<>!-+@$.:=(){}[] \t0aé\u{1F600}",
    '"""',
    "'''",
    "<!--",
    "-->",
    "/*",
    "*/",
    "//",
    "const ",
    "0x",
    "1e",
  );
  const line = fc.oneof(
    fc.array(sign, { maxLength: 60 }).map((all) => all.join("")),
    fc.string({ unit: "binary", maxLength: 60 }),
  );
  fc.assert(
    fc.property(fc.constantFrom(...languages), fc.array(line, { maxLength: 8 }), (language, lines) => {
      const colours = new Colours(language);
      for (const text of lines) {
        const pieces = colours.line(text);
        expect(pieces.map((p) => p.text).join("")).toBe(text);
        for (const [i, p] of pieces.entries()) {
          expect(p.text).not.toBe("");
          expect(p.kind).not.toBe(pieces[i + 1]?.kind);
        }
      }
    }),
    { numRuns: 500 },
  );
});

test.each(languages)("a long line of one sign is read in one go: %s", (language) => {
  for (const sign of ["-", "a", " ", '"', "'", "\\", "0", "a-", "- ", "<a ", ":", "a:", "/*", "\\`", "[", "=", "$", "a.", "_"]) {
    const text = sign.repeat(60_000 / sign.length);
    const pieces = new Colours(language).line(text);
    expect(pieces.map((p) => p.text).join("").length).toBe(text.length);
  }
});
