import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import * as md from "streaming-markdown";
import { prose, target } from "../fold/text.ts";
import { t } from "../words.ts";

/** A text is shown up to here at first: what is longer costs more elements than a page should have. */
const firstPart = 64 << 10;
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
}

function begin(p: Place, token: md.Token): void {
  const parent = (p.open.at(-1) as { element: Element }).element;
  const add = (tag: string, into: Element = parent) => {
    const element = document.createElement(tag);
    into.append(element);
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

function renderer(root: Element): md.Renderer<Place> {
  return {
    data: { open: [{ element: root, skipped: false }] },
    add_token: begin,
    end_token: end,
    add_text: (p, text) => p.open.at(-1)?.element.append(prose(text)),
    set_attr: attribute,
  };
}

/** Markdown that grows: what has been shown is never made again. No text becomes HTML. */
export function Markdown({ text, done }: { text: string; done: boolean }): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  const state = useRef<{ parser: md.Parser; written: string; ended: boolean } | undefined>(undefined);
  const [all, setAll] = useState(false);
  const shown = all ? text : text.slice(0, firstPart);
  useLayoutEffect(() => {
    const root = ref.current as HTMLDivElement;
    let s = state.current;
    if (!s || s.ended ? s?.written !== shown : !shown.startsWith(s.written)) {
      root.replaceChildren();
      s = { parser: md.parser(renderer(root)), written: "", ended: false };
      state.current = s;
    }
    if (!s) return;
    if (shown.length > s.written.length) md.parser_write(s.parser, shown.slice(s.written.length));
    s.written = shown;
    if (done && !s.ended) {
      md.parser_end(s.parser);
      s.ended = true;
    }
  }, [shown, done]);
  useEffect(() => () => ref.current?.replaceChildren(), []);
  return (
    <>
      <div class="markdown" ref={ref} dir="auto" />
      {shown.length < text.length && (
        <button type="button" onClick={() => setAll(true)}>
          {t("talk.more")}
        </button>
      )}
    </>
  );
}
