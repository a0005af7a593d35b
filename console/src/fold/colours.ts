/** What a piece of code is, as far as colours tell; empty: nothing special. */
export type Kind = "" | "comment" | "string" | "number" | "keyword" | "name" | "added" | "removed";

/** A piece of a line of code. */
export interface Piece {
  kind: Kind;
  text: string;
}

interface Grammar {
  /** Finds the next piece; the name of the group that fits is its kind. Of `open` the rest is found by the sign that ends it. */
  next: RegExp;
  keywords: ReadonlySet<string>;
  /** What begins over several lines, what ends it, and what it is. */
  spans: Readonly<Record<string, { end: string; kind: Kind }>>;
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));

const number = "(?<number>(?<![\\p{L}\\p{N}_.])(?:0[xXbBoO][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)(?![\\p{L}\\p{N}_]))";
const double = '"(?:\\\\.|[^"\\\\])*"?';
const single = "'(?:\\\\.|[^'\\\\])*'?";
const word = "(?<word>[\\p{L}_$@][\\p{L}\\p{N}_$]*)";

/** Makes a grammar of what begins comments to the end of a line, spans, texts, and of keywords. */
function grammar(comment: string, spans: Grammar["spans"], texts: readonly string[], keywords: string, before = ""): Grammar {
  const escaped = (s: string) => s.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  const parts = [
    before,
    Object.keys(spans).length > 0 ? `(?<open>${Object.keys(spans).map(escaped).join("|")})` : "",
    comment && `(?<comment>(?:${comment}).*)`,
    texts.length > 0 ? `(?<string>${texts.join("|")})` : "",
    number,
    word,
  ];
  return { next: new RegExp(parts.filter((p) => p !== "").join("|"), "gu"), keywords: words(keywords), spans };
}

const block = { "/*": { end: "*/", kind: "comment" } } as const;
const back = { "`": { end: "`", kind: "string" } } as const;
const quotes = { '"""': { end: '"""', kind: "string" }, "'''": { end: "'''", kind: "string" } } as const;
const key = (of: string) => `(?<name>${of})`;

const script =
  "async await break case catch class const continue debugger default delete do else enum export extends false finally for from function get if implements import in instanceof interface let new null of private protected public readonly return satisfies set static super switch this throw true try type typeof undefined var void while yield";
const shell = "case do done elif else esac export fi for function if in local return set then until while";

/** The grammars that are known, by the names of their languages. They are made when they are first needed. */
const grammars: Record<string, () => Grammar> = {
  "c cpp c++ cc h hpp java kotlin kt swift csharp cs c# scala dart php proto protobuf": () =>
    grammar(
      "//",
      block,
      [double, single],
      "abstract as auto bool boolean break byte case catch char class const continue default defer delete do double else enum extends extern false final finally float for foreach fun func function guard if implements import in include inline int interface internal is let long message namespace new null nullptr object operator override package private protected public repeated return rpc service short signed sizeof static string struct super switch this throw throws true try typedef typename union unsigned using val var virtual void volatile when while",
    ),
  "css scss less": () =>
    grammar("", block, [double, single], "!important @media @import @keyframes @layer @supports", key("(?<![-\\w])[-\\w]+(?=\\s*:)")),
  diff: () => grammar("", {}, [], "", "(?<added>^\\+.*)|(?<removed>^-.*)|(?<keyword>^@@.*)"),
  "go golang": () =>
    grammar(
      "//",
      { ...block, ...back },
      [double, single],
      "any bool break byte case chan const continue default defer else error fallthrough false float64 for func go goto if import int int64 interface iota map nil package range return rune select string struct switch true type uint64 var",
    ),
  "html xml svg vue": () =>
    grammar(
      "",
      { "<!--": { end: "-->", kind: "comment" } },
      [double, single],
      "",
      "(?<keyword></?[\\p{L}][\\w:-]*|/?>)|(?<name>(?<![\\w:-])[\\w:-]+(?==))",
    ),
  "javascript js jsx mjs cjs typescript ts tsx": () => grammar("//", { ...block, ...back }, [double, single], script),
  "json jsonc json5 ndjson jsonl": () => grammar("//", block, [double], "true false null", key(`${'"(?:\\\\.|[^"\\\\])*"'}(?=\\s*:)`)),
  "python py": () =>
    grammar(
      "#",
      quotes,
      [double, single],
      "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield",
    ),
  "ruby rb": () =>
    grammar(
      "#",
      {},
      [double, single],
      "and begin break case class def do else elsif end ensure false for if in module next nil not or redo require rescue retry return self super then true unless until when while yield",
    ),
  "rust rs": () =>
    grammar(
      "//",
      block,
      [double],
      "as async await bool box break const continue crate dyn else enum extern false fn for i32 i64 if impl in let loop match mod move mut pub ref return self Self static str String struct super trait true type u8 u32 u64 unsafe use usize Vec where while",
    ),
  "sh bash shell zsh console": () => grammar("(?<![^\\s;])#", {}, [double, "'[^']*'?"], shell, key("\\$\\{?\\w+\\}?")),
  sql: () =>
    grammar(
      "--",
      block,
      ["'(?:''|[^'])*'?", double],
      "add all alter and as asc begin between by case commit constraint create delete desc distinct drop else end exists false foreign from full group having in index inner insert into is join key left like limit not null offset on or order outer primary references returning right select set table then true union unique update using values view when where with",
    ),
  "toml ini": () => grammar("[#;]", {}, [double, single], "true false", key("^\\s*(?:\\[.*\\]|[\\w.-]+(?=\\s*=))")),
  "yaml yml": () => grammar("(?<!\\S)#", {}, [double, "'(?:''|[^'])*'?"], "true false null yes no", key("(?<!\\S)[\\w./-]+(?=:(?:\\s|$))")),
  "dockerfile docker make makefile": () =>
    grammar(
      "#",
      {},
      [double, single],
      "FROM RUN CMD LABEL EXPOSE ENV ADD COPY ENTRYPOINT VOLUME USER WORKDIR ARG AS ifeq ifdef else endif include define",
    ),
};

const made = new Map<string, Grammar>();

function grammarOf(language: string): Grammar | undefined {
  const name = language.toLowerCase();
  const found = Object.entries(grammars).find(([names]) => names.split(" ").includes(name));
  if (!found) return undefined;
  const [names, make] = found;
  const g = made.get(names) ?? make();
  made.set(names, g);
  return g;
}

/** Tells the pieces of code apart, line by line. What it gives is the line, in pieces: no character is lost or changed. */
export class Colours {
  private readonly grammar: Grammar | undefined;
  /** What goes on from the line before. */
  private open: { end: string; kind: Kind } | undefined;

  constructor(language: string) {
    this.grammar = grammarOf(language);
  }

  /** Whether the language is known: otherwise nothing has a colour. */
  get known(): boolean {
    return this.grammar !== undefined;
  }

  /** The pieces of the next line. */
  line(text: string): Piece[] {
    const g = this.grammar;
    const out: Piece[] = [];
    const put = (kind: Kind, piece: string) => {
      const last = out.at(-1);
      if (piece === "") return;
      if (last?.kind === kind) last.text += piece;
      else out.push({ kind, text: piece });
    };
    let at = 0;
    while (at < text.length) {
      if (this.open) {
        const end = endOf(text, at, this.open.end);
        put(this.open.kind, text.slice(at, end < 0 ? text.length : end));
        if (end < 0) return out;
        at = end;
        this.open = undefined;
        continue;
      }
      const found = g && next(g, text, at);
      if (!found) break;
      put("", text.slice(at, found.from));
      at = found.from + found.text.length;
      put(found.kind, found.text);
      this.open = found.open;
    }
    put("", text.slice(at));
    return out;
  }
}

/** Where a span ends: behind its sign, which a backslash hides. */
function endOf(text: string, from: number, sign: string): number {
  for (let at = text.indexOf(sign, from); at >= 0; at = text.indexOf(sign, at + 1)) {
    let slashes = 0;
    while (sign !== "*/" && text[at - 1 - slashes] === "\\") slashes++;
    if (slashes % 2 === 0) return at + sign.length;
  }
  return -1;
}

function next(
  g: Grammar,
  text: string,
  at: number,
): { from: number; text: string; kind: Kind; open?: { end: string; kind: Kind } } | undefined {
  g.next.lastIndex = at;
  for (let m = g.next.exec(text); m; m = g.next.exec(text)) {
    const [found] = m;
    const groups = m.groups ?? {};
    if (groups["open"] !== undefined) {
      const open = g.spans[found] as { end: string; kind: Kind };
      return { from: m.index, text: found, kind: open.kind, open };
    }
    if (groups["word"] !== undefined) {
      const known = g.keywords.has(found) || (g.keywords.has("select") && g.keywords.has(found.toLowerCase()));
      if (known) return { from: m.index, text: found, kind: "keyword" };
      if (text[m.index + found.length] === "(") return { from: m.index, text: found, kind: "name" };
      continue;
    }
    for (const kind of ["comment", "string", "number", "name", "keyword", "added", "removed"] as const)
      if (groups[kind] !== undefined && found !== "") return { from: m.index, text: found, kind };
    g.next.lastIndex = Math.max(g.next.lastIndex, m.index + 1);
  }
  return undefined;
}
