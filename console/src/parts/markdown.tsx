import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import * as md from "streaming-markdown";
import { copy } from "../app.ts";
import { alignment } from "../fold/alignment.ts";
import { Colours, type Piece } from "../fold/colours.ts";
import { Lists, type Sink } from "../fold/lists.ts";
import { cut, plain, prose, target } from "../fold/text.ts";
import { trailing, withinWords } from "../fold/underscores.ts";
import { t } from "../words.ts";

/** A text is shown in parts of so many characters, and of so many elements: more would stop the page while they are made. */
const part = { characters: 64 << 10, elements: 3000 };
/** Characters that are written between two looks at the number of elements. */
const piece = 512;
/** Elements are not nested deeper; what is inside goes on flat. */
const deepest = 24;

const tags: Partial<Record<md.Token, string>> = {
  [md.PARAGRAPH]: "p",
  [md.CODE_INLINE]: "code",
  [md.ITALIC_AST]: "em",
  [md.ITALIC_UND]: "em",
  [md.STRONG_AST]: "strong",
  [md.STRONG_UND]: "strong",
  [md.STRIKE]: "s",
  [md.LINK]: "a",
  [md.RAW_URL]: "a",
  [md.BLOCKQUOTE]: "blockquote",
  [md.LINE_BREAK]: "br",
  [md.RULE]: "hr",
  [md.LIST_UNORDERED]: "ul",
  [md.LIST_ORDERED]: "ol",
  [md.LIST_ITEM]: "li",
};

/** The signs that begin emphasis, which stay if nothing ends it. */
const signs: Partial<Record<md.Token, string>> = {
  [md.ITALIC_AST]: "*",
  [md.ITALIC_UND]: "_",
  [md.STRONG_AST]: "**",
  [md.STRONG_UND]: "__",
  [md.STRIKE]: "~~",
};

const headings: readonly md.Token[] = [md.HEADING_1, md.HEADING_2, md.HEADING_3, md.HEADING_4, md.HEADING_5, md.HEADING_6];

/** An element that is open. */
interface Open {
  element: Element;
  skipped: boolean;
  /** Of a link: the bracket before it, which stays if it turns out to be none. */
  bracket?: Text;
  /** Of emphasis: the sign that began it, which stays if none ends it. */
  begun?: string;
  /** Stands behind what was between two signs of a formula. */
  sign?: string;
  /** Of a block of code: its colours, and the last line, which is not complete. */
  colours?: Colours;
  rest?: Text;
}

/** Where a text stands: the elements that are open, outermost first, and the parser of what is in the innermost item. */
interface Place {
  open: Open[];
  made: number;
  parser: md.Parser | undefined;
  /** The text of this parser so far, and where the part of it begins that is being written. */
  text: string;
  from: number;
  /** The level of the last heading: no level is left out. */
  level: number;
  table: Table | undefined;
}

/** A table that is being written. */
interface Table {
  from: number;
  rows: number;
  column: number;
  aligned: readonly string[] | undefined;
  head: HTMLElement[];
}

function begin(p: Place, token: md.Token): void {
  const parent = (p.open.at(-1) as { element: Element }).element;
  const add = (tag: string, into: Element = parent) => {
    const element = document.createElement(tag);
    into.append(element);
    p.made++;
    return element;
  };
  if (token === md.DOCUMENT) return;
  if (p.open.length > deepest) {
    p.open.push({ element: parent, skipped: true });
    return;
  }
  const at = headings.indexOf(token) + 1;
  if (at > 0) {
    p.level = Math.min(at + 2, p.level + 1, 6);
    const heading = add(`h${p.level}`);
    heading.className = `h${at}`;
    p.open.push({ element: heading, skipped: false });
    return;
  }
  p.open.push({ skipped: false, ...made(p, token, parent, add) });
}

type Add = (tag: string, into?: Element) => HTMLElement;

function made(p: Place, token: md.Token, parent: Element, add: Add): Omit<Open, "skipped"> {
  switch (token) {
    case md.CODE_BLOCK:
    case md.CODE_FENCE:
      return { element: fence(add) };
    case md.TABLE: {
      const box = add("div");
      box.className = "table";
      box.tabIndex = 0;
      p.table = { from: p.from, rows: 0, column: 0, aligned: undefined, head: [] };
      return { element: add("tbody", add("table", box)) };
    }
    case md.TABLE_ROW:
      if (p.table && ++p.table.rows === 2) align(p.table, p.text);
      if (p.table) p.table.column = 0;
      return { element: add("tr") };
    case md.TABLE_CELL:
      return { element: cell(p.table, add) };
    case md.IMAGE: {
      const element = add("span"); // pictures of others are never fetched
      element.className = "image";
      return { element };
    }
    case md.CHECKBOX: {
      const element = add("span"); // a field would need a name, which comes after it
      element.className = "box";
      element.role = "img";
      element.ariaLabel = t("talk.todo");
      return { element };
    }
    case md.LINK: {
      const bracket = document.createTextNode("[");
      parent.append(bracket);
      return { element: add("a"), bracket };
    }
    case md.EQUATION_BLOCK:
    case md.EQUATION_INLINE: {
      const sign = token === md.EQUATION_BLOCK ? "$$" : "$";
      const element = add("span");
      element.append(sign);
      return { element, sign };
    }
  }
  const begun = signs[token];
  return { element: add(tags[token] ?? "span"), ...(begun ? { begun } : {}) };
}

/** A block of code below its language and a button that copies it. */
function fence(add: Add): HTMLElement {
  const box = add("div");
  box.className = "fence";
  const bar = add("div", box);
  bar.className = "bar";
  add("span", bar).textContent = t("talk.code");
  const button = add("button", bar) as HTMLButtonElement;
  button.type = "button";
  button.className = "quiet";
  button.textContent = t("sample.copy");
  const pre = add("pre", box);
  pre.tabIndex = 0; // a reader without a mouse scrolls it
  const code = add("code", pre);
  button.addEventListener("click", () => void copy(code.textContent ?? ""));
  return code;
}

function cell(table: Table | undefined, add: Add): HTMLElement {
  const element = add(table && table.rows === 1 ? "th" : "td");
  if (!table) return element;
  if (table.rows === 1) table.head.push(element);
  element.className = table.aligned?.[table.column] ?? "";
  table.column++;
  return element;
}

/** Aligns the columns of a table as the line below its head says, which the parser reads over. */
function align(table: Table, text: string): void {
  table.aligned = alignment(text.slice(table.from));
  for (const [i, head] of table.head.entries()) head.className = table.aligned[i] ?? "";
}

/** The address of a link without the signs that escape others. */
const unescaped = (href: string) => href.replace(/\\([!-/:-@[-`{-~])/g, "$1");

function attribute(p: Place, name: md.Attr, value: string): void {
  const top = p.open.at(-1) as Open;
  const { element, skipped } = top;
  if (skipped) return;
  if (name === md.HREF && element instanceof HTMLAnchorElement) {
    const url = target(unescaped(value));
    top.bracket?.remove();
    delete top.bracket;
    if (!url) return;
    element.href = url.href;
    element.rel = "noopener noreferrer nofollow";
    element.target = "_blank";
    element.dataset["host"] = url.host || url.protocol;
  } else if (name === md.SRC) {
    const url = target(value);
    element.setAttribute("data-host", url?.host ?? "");
  } else if (name === md.CHECKED) {
    element.classList.add("checked");
    element.ariaLabel = t("talk.todone");
  } else if (name === md.LANG && element.parentElement?.previousElementSibling?.firstChild) {
    element.parentElement.previousElementSibling.firstChild.textContent = plain(cut(value, 40)) || t("talk.code");
    top.colours = new Colours(value.trim());
  } else if (name === md.START && element instanceof HTMLOListElement) element.start = Number(value);
}

/** Adds to a block of code. A line has its colours once it is complete. */
function coloured(p: Place, top: Open, text: string): void {
  const { element, colours } = top;
  if (!colours?.known) {
    element.append(text);
    return;
  }
  if (!top.rest) {
    top.rest = document.createTextNode("");
    element.append(top.rest);
  }
  const all = top.rest.data + text;
  const cut = all.lastIndexOf("\n") + 1;
  top.rest.data = all.slice(cut);
  if (cut > 0) p.made += paint(top.rest, colours, all.slice(0, cut - 1).split("\n"), "\n");
}

/** Writes lines of code before what comes after them. Returns how many elements that took. */
function paint(rest: Text, colours: Colours, lines: readonly string[], end: string): number {
  const written = document.createDocumentFragment();
  const put = ({ kind, text }: Piece) => {
    if (kind === "") return written.append(text);
    const element = document.createElement("span");
    element.className = kind;
    element.textContent = text;
    written.append(element);
  };
  for (const line of lines) {
    colours.line(line).forEach(put);
    written.append(end);
  }
  const made = written.childElementCount;
  rest.before(written);
  return made;
}

/** The end of a link says where it leads, if its text names another place. What has no address was no link. */
function end(p: Place): void {
  const top = p.open.pop();
  if (!top || top.skipped) return;
  if (top.sign) top.element.append(top.sign);
  if (top.rest && top.colours) {
    p.made += paint(top.rest, top.colours, [top.rest.data], "");
    top.rest.remove();
  }
  if (top.element.tagName === "TBODY") p.table = undefined;
  if (top.begun && !top.begun.startsWith(p.parser?.pending.charAt(0) || "none")) {
    top.element.replaceWith(top.begun, ...top.element.childNodes);
    return;
  }
  if (!(top.element instanceof HTMLAnchorElement)) return;
  if (top.bracket) {
    if (p.parser?.pending === "]") top.element.append("]");
    top.element.replaceWith(...top.element.childNodes);
    return;
  }
  const host = top.element.dataset["host"];
  if (host && !(top.element.textContent ?? "").includes(host)) {
    const note = document.createElement("span");
    note.className = "host";
    note.textContent = ` (${host})`;
    top.element.after(note);
  }
}

/** Writes the blocks of a text: each stretch of it within an item, or outside of lists, has a parser of its own. */
class Blocks implements Sink {
  /** How many elements were open when the parser began. */
  private base = 0;

  constructor(private readonly place: Place) {}

  text(text: string): void {
    const p = this.place;
    if (!p.parser) {
      if (text.trim() === "") return;
      this.base = p.open.length;
      p.text = "";
      p.parser = md.parser({
        data: p,
        add_token: begin,
        end_token: end,
        add_text: (p, text) => coloured(p, p.open.at(-1) as Open, prose(text)),
        set_attr: attribute,
      });
    }
    p.from = p.text.length;
    p.text += text;
    put(p.parser, p.text, p.from);
  }

  list(start: number | undefined): void {
    this.rest();
    begin(this.place, start === undefined ? md.LIST_UNORDERED : md.LIST_ORDERED);
    if (start !== undefined && start !== 1) attribute(this.place, md.START, String(start));
  }

  item(): void {
    this.rest();
    begin(this.place, md.LIST_ITEM);
  }

  box(checked: boolean): void {
    begin(this.place, md.CHECKBOX);
    if (checked) attribute(this.place, md.CHECKED, "");
    end(this.place);
  }

  close(): void {
    this.rest();
    end(this.place);
  }

  /** Ends the stretch, and all that it has left open. */
  rest(): void {
    const p = this.place;
    if (!p.parser) return;
    md.parser_end(p.parser);
    while (p.open.length > this.base) end(p);
    p.parser = undefined;
  }
}

/** A text on its way to the page. */
interface Writing {
  lists: Lists;
  blocks: Blocks;
  place: Place;
  written: string;
  ended: boolean;
}

function writing(root: Element): Writing {
  root.replaceChildren();
  const place: Place = {
    open: [{ element: root, skipped: false }],
    made: 0,
    parser: undefined,
    text: "",
    from: 0,
    level: 2,
    table: undefined,
  };
  const blocks = new Blocks(place);
  return { lists: new Lists(blocks), blocks, place, written: "", ended: false };
}

/** Writes more of the text, up to a number of parts. Underscores at its end wait for what follows them, unless it is done. */
function write(w: Writing, text: string, parts: number, done: boolean): void {
  const known = done ? text.length : text.length - trailing(text);
  const most = Math.min(known, parts * part.characters);
  while (w.written.length < most && w.place.made < parts * part.elements) {
    let to = Math.min(w.written.length + piece, most);
    while (text.charAt(to - 1) === "_" && to < text.length) to++; // a run of underscores is written as one
    if (/[\ud800-\udbff]/.test(text.charAt(to - 1))) to++; // both halves of a character
    w.lists.write(text.slice(w.written.length, to));
    w.written = text.slice(0, to);
  }
}

/** Writes the last stretch of the text. An underscore within a word is one, and begins no emphasis. */
function put(parser: md.Parser, text: string, from: number): void {
  let at = from;
  for (const [start, end] of withinWords(text, from, text.length)) {
    md.parser_write(parser, text.slice(at, start));
    const signs = text.slice(start, end);
    md.parser_write(parser, verbatim.includes(parser.token) ? signs : signs.replaceAll("_", "\\_"));
    at = end;
  }
  md.parser_write(parser, text.slice(at));
}

/** In these nothing is escaped. */
const verbatim: readonly number[] = [
  md.CODE_BLOCK,
  md.CODE_FENCE,
  md.CODE_INLINE,
  md.RAW_URL,
  md.IMAGE,
  md.EQUATION_BLOCK,
  md.EQUATION_INLINE,
];

/** Markdown that grows: what has been shown is never made again. No text becomes HTML. */
export function Markdown({ text, done }: { text: string; done: boolean }): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  const state = useRef<Writing | undefined>(undefined);
  const [parts, setParts] = useState(1);
  const [cut, setCut] = useState(false);
  useLayoutEffect(() => {
    let w = state.current;
    if (!w || !text.startsWith(w.written) || (w.ended && w.written !== text)) {
      w = writing(ref.current as HTMLDivElement);
      state.current = w;
    }
    write(w, text, parts, done);
    const whole = w.written.length >= text.length - (done ? 0 : trailing(text));
    if (done && whole && !w.ended) {
      w.lists.end();
      w.blocks.rest();
      w.ended = true;
    }
    setCut(!whole);
  }, [text, done, parts]);
  useEffect(() => () => ref.current?.replaceChildren(), []);
  return (
    <>
      <div class="markdown" ref={ref} dir="auto" />
      {cut && (
        <button type="button" onClick={() => setParts(parts + 1)}>
          {t("talk.more")}
        </button>
      )}
    </>
  );
}
