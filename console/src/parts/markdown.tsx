import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import * as md from "streaming-markdown";
import { prose, target } from "../fold/text.ts";
import { t } from "../words.ts";

/** A text is shown in parts of so many characters, and of so many elements: more would stop the page while they are made. */
const part = { characters: 64 << 10, elements: 3000 };
/** Characters that are written between two looks at the number of elements. */
const piece = 512;
/** Elements are not nested deeper; what is inside goes on flat. */
const deepest = 24;

const tags: Partial<Record<md.Token, string>> = {
  [md.PARAGRAPH]: "p",
  [md.HEADING_1]: "h3",
  [md.HEADING_2]: "h4",
  [md.HEADING_3]: "h5",
  [md.HEADING_4]: "h6",
  [md.HEADING_5]: "h6",
  [md.HEADING_6]: "h6",
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
  [md.TABLE_CELL]: "td",
};

/** Where the parser stands: the elements that are open, outermost first. */
interface Place {
  open: { element: Element; skipped: boolean }[];
  made: number;
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
  let element: Element;
  switch (token) {
    case md.CODE_BLOCK:
    case md.CODE_FENCE: {
      const pre = add("pre");
      pre.tabIndex = 0; // a reader without a mouse scrolls it
      element = add("code", pre);
      break;
    }
    case md.TABLE: {
      const box = add("div");
      box.className = "table";
      box.tabIndex = 0;
      element = add("tbody", add("table", box));
      break;
    }
    case md.TABLE_ROW:
      element = add("tr");
      break;
    case md.IMAGE:
      element = add("span"); // pictures of others are never fetched
      element.className = "image";
      break;
    case md.CHECKBOX: {
      const box = add("input") as HTMLInputElement;
      box.type = "checkbox";
      box.disabled = true;
      element = box;
      break;
    }
    default:
      element = add(tags[token] ?? "span");
  }
  p.open.push({ element, skipped: false });
}

function attribute(p: Place, name: md.Attr, value: string): void {
  const { element, skipped } = p.open.at(-1) as { element: Element; skipped: boolean };
  if (skipped) return;
  if (name === md.HREF && element instanceof HTMLAnchorElement) {
    const url = target(value);
    if (!url) return;
    element.href = url.href;
    element.rel = "noopener noreferrer nofollow";
    element.target = "_blank";
    element.dataset["host"] = url.host || url.protocol;
  } else if (name === md.SRC) {
    const url = target(value);
    element.setAttribute("data-host", url?.host ?? "");
  } else if (name === md.CHECKED && element instanceof HTMLInputElement) element.checked = true;
  else if (name === md.START && element instanceof HTMLOListElement) element.start = Number(value) || 1;
}

/** The end of a link says where it leads, if its text names another place. */
function end(p: Place): void {
  const top = p.open.pop();
  if (!top || top.skipped || !(top.element instanceof HTMLAnchorElement)) return;
  const host = top.element.dataset["host"];
  if (host && !(top.element.textContent ?? "").includes(host)) {
    const note = document.createElement("span");
    note.className = "host";
    note.textContent = ` (${host})`;
    top.element.after(note);
  }
}

/** A text on its way to the page. */
interface Writing {
  parser: md.Parser;
  place: Place;
  written: string;
  ended: boolean;
}

function writing(root: Element): Writing {
  root.replaceChildren();
  const place: Place = { open: [{ element: root, skipped: false }], made: 0 };
  const parser = md.parser({
    data: place,
    add_token: begin,
    end_token: end,
    add_text: (p, text) => p.open.at(-1)?.element.append(prose(text)),
    set_attr: attribute,
  });
  return { parser, place, written: "", ended: false };
}

/** Writes on, up to so many parts of the text. */
function write(w: Writing, text: string, parts: number): void {
  const most = Math.min(text.length, parts * part.characters);
  while (w.written.length < most && w.place.made < parts * part.elements) {
    let to = Math.min(w.written.length + piece, most);
    if (/[\ud800-\udbff]/.test(text.charAt(to - 1))) to++; // both halves of a character
    md.parser_write(w.parser, text.slice(w.written.length, to));
    w.written = text.slice(0, to);
  }
}

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
    write(w, text, parts);
    const whole = w.written.length >= text.length;
    if (done && whole && !w.ended) {
      md.parser_end(w.parser);
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
