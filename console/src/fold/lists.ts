/** What a text with lists becomes: lists, their items, and text outside of them or in an item, without its indentation. */
export interface Sink {
  /** A list opens; `start` is the number of its first item, undefined of one with bullets. */
  list(start: number | undefined): void;
  item(): void;
  /** The item begins with a box. */
  box(checked: boolean): void;
  /** Text of the innermost open item, or of the document. */
  text(text: string): void;
  /** The innermost open list or item closes. */
  close(): void;
}

/** An open item, and the list that it belongs to. Columns count from the text of the item around it. */
interface Item {
  /** What its list is made with: a bullet, or the sign after a number. */
  sign: string;
  /** The column of its marker, and of its text. */
  marker: number;
  content: number;
}

/** A line as far as it is there: its indentation, and the rest. */
interface Line {
  indent: number;
  rest: string;
  whole: boolean;
}

const bullet = /^([-*+])(\s|$)/;
const number = /^(\d{1,9})([.)])(\s|$)/;
const rule = /^([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const fence = /^(`{3,}|~{3,})/;

/** Items are not nested deeper: what looks like a further marker is text. */
const deepest = 16;

/** What begins a block other than a paragraph. */
const block = /^(?:#{1,6}(?:\s|$)|>|`{3}|~{3}|\||\$\$)/;

/**
 * Finds the lists of a Markdown text that grows, by the rules of CommonMark for list items: what is indented as far as the text of an item
 * belongs to it, with blank lines between. Beyond these rules two columns are enough, and code in an item needs no indentation: models
 * write so. A piece of a line is passed on as soon as its place is known.
 */
export class Lists {
  private readonly items: Item[] = [];
  /** The beginning of a line whose place is not known yet. */
  private held = "";
  /** Whether the place of the line is known. */
  private placed = false;
  /** The line so far, once its place is known. */
  private line = "";
  /** The fence of the block of code that is open. */
  private code: string | undefined;
  /** Whether the last line belongs to a paragraph. */
  private paragraph = false;
  /** Whether the list at the place of the last closed item is open: another item may follow. */
  private readonly open: (string | undefined)[] = [undefined];

  constructor(private readonly sink: Sink) {}

  write(text: string): void {
    for (let rest = text; rest !== ""; ) {
      const cut = rest.indexOf("\n") + 1;
      const piece = cut === 0 ? rest : rest.slice(0, cut);
      rest = rest.slice(piece.length);
      this.piece(piece);
    }
  }

  /** Passes on what is held, and closes what is open. */
  end(): void {
    if (this.held !== "") this.place(true);
    this.shut(0, undefined);
  }

  /** Takes a piece of a line, which is the last one if it ends it. */
  private piece(piece: string): void {
    if (this.placed) this.put(piece);
    else {
      this.held += piece;
      this.place(piece.endsWith("\n"));
    }
    if (this.placed && piece.endsWith("\n")) this.over();
  }

  private put(text: string): void {
    if (text === "") return;
    this.line += text;
    this.sink.text(text);
  }

  /** The line has ended. */
  private over(): void {
    const line = this.line.trim();
    const [mark] = fence.exec(line) ?? [];
    if (this.code !== undefined) {
      if (mark?.startsWith(this.code) && line === mark) this.code = undefined;
      this.paragraph = false;
    } else {
      this.code = mark?.startsWith("`") && line.slice(mark.length).includes("`") ? undefined : mark;
      this.paragraph = line !== "" && !block.test(line) && !rule.test(line);
    }
    this.placed = false;
    this.line = "";
  }

  /** Finds the place of the line that is held, if enough of it is there, and passes on what belongs to the text. */
  private place(whole: boolean): void {
    const text = this.found(whole);
    if (text === undefined) return;
    this.held = "";
    this.placed = true;
    this.put(text);
  }

  /** The text of the line that is held, in the item to which it belongs; undefined: that is not known yet. */
  private found(whole: boolean): string | undefined {
    const [space = ""] = /^[ \t]*/.exec(this.held) ?? [];
    const rest = this.held.slice(space.length);
    if (rest === "" && !whole) return undefined;
    if (this.code !== undefined) return without(space, this.depth()) + rest;
    if (rest.trim() === "") return rest;
    const [line, within] = this.inner({ indent: columns(space), rest, whole });
    const made = this.markers(line, within);
    if (made === "more") return undefined;
    if (made) return indented(made);
    if (within < this.items.length && this.paragraph) {
      if (undecided(line)) return undefined;
      if (!block.test(line.rest) && !rule.test(line.rest.trim())) return line.rest; // it belongs to the paragraph all the same
    }
    this.shut(within, undefined);
    const looks = this.paragraph && line.indent < 4 && markerOf(line) !== undefined; // like an item, but does not interrupt the paragraph
    if (looks) return line.rest.replace(/[-*+.)]/, "\\$&");
    return this.items.length === 0 ? space + line.rest : indented(line);
  }

  /** A line without the indentation of the items that it belongs to, and how many these are. */
  private inner(whole: Line): [line: Line, within: number] {
    let line = whole;
    let within = 0;
    for (const { marker, content } of this.items) {
      if (line.indent < Math.min(content, marker + 2)) break;
      line = { ...line, indent: Math.max(0, line.indent - content) };
      within++;
    }
    return [line, within];
  }

  /** Opens the items whose markers the line begins with, and returns the rest; undefined: it begins with none. */
  private markers(begun: Line, within: number): Line | "more" | undefined {
    let line = begun;
    const opens: (Item & { start: number | undefined })[] = [];
    while (within + opens.length < deepest) {
      if (line.indent >= 4 && (opens.length > 0 || within === 0)) break; // code
      const m = markerOf(line);
      if (m === "more") return "more";
      if (!m || (opens.length === 0 && this.paragraph && within === this.items.length && !mayInterrupt(m))) break;
      opens.push({ sign: m.sign, start: m.start, marker: line.indent, content: line.indent + m.width });
      line = { ...line, indent: m.further, rest: m.rest };
    }
    if (opens.length === 0) return undefined;
    const [first] = opens as [Item & { start: number | undefined }];
    this.shut(within, first.sign);
    for (const { start, ...item } of opens) this.begin(item, start);
    const box = /^\[([ xX])\]\s/.exec(line.rest);
    if (box && line.indent === 0) {
      this.sink.box(box[1] !== " ");
      line = { ...line, rest: line.rest.slice(3) };
    }
    return line;
  }

  private begin(item: Item, start: number | undefined): void {
    const at = this.items.length;
    if (this.open[at] !== item.sign) {
      this.sink.list(start);
      this.open[at] = item.sign;
    }
    this.sink.item();
    this.items.push(item);
    this.open[at + 1] = undefined;
    this.paragraph = false;
  }

  /** Closes the items from a depth on, and the list there, unless its sign is the one that follows. */
  private shut(depth: number, follows: string | undefined): void {
    for (let at = this.items.length; at >= depth; at--) {
      if (this.open[at] !== undefined && (at > depth || this.open[at] !== follows)) {
        this.sink.close();
        this.open[at] = undefined;
      }
      if (at > depth) {
        this.sink.close();
        this.items.pop();
      }
    }
  }

  /** The column of the text of the innermost item. */
  private depth(): number {
    return this.items.reduce((sum, i) => sum + i.content, 0);
  }
}

interface Marker {
  sign: string;
  start: number | undefined;
  /** Columns from the marker to the text. */
  width: number;
  /** Columns by which the text is indented beyond that. */
  further: number;
  rest: string;
}

/** The marker with which a line begins; "more": that is not known yet. */
function markerOf({ rest, whole }: Line): Marker | "more" | undefined {
  if (!whole && (/^(?:[-*+]|\d{1,9}[.)]?)[ \t]*$/.test(rest) || /^([-*])(?:[ \t]*\1)*[ \t]*$/.test(rest))) return "more";
  if (rule.test(rest.trim())) return undefined;
  const m = bullet.exec(rest) ?? number.exec(rest);
  if (!m) return undefined;
  const ordered = m.length > 3;
  const marker = ordered ? `${m[1]}${m[2]}` : (m[1] as string);
  const after = rest.slice(marker.length);
  const [space = ""] = /^[ \t]*/.exec(after) ?? [];
  const text = after.slice(space.length);
  if (!whole && /^\[(?:[ xX]\]?)?$/.test(text)) return "more";
  const wide = columns(space);
  const gap = text.trim() === "" || wide > 4 ? 1 : wide;
  return {
    sign: ordered ? (m[2] as string) : marker,
    start: ordered ? Number(m[1]) : undefined,
    width: marker.length + gap,
    further: text.trim() === "" ? 0 : wide - gap,
    rest: text,
  };
}

/** Whether a marker begins a list in the middle of a paragraph: a number other than 1 may be one of the text. */
const mayInterrupt = (m: Marker) => m.rest.trim() !== "" && (m.start === undefined || m.start === 1);

const indented = ({ indent, rest }: Line) => " ".repeat(rest.trim() === "" ? 0 : indent) + rest;

/** The indentation of code without so many columns. */
function without(space: string, most: number): string {
  let at = 0;
  while (at < space.length && columns(space.slice(0, at + 1)) <= most) at++;
  return space.slice(at);
}

/** Whether it is not known yet what a line begins with. */
const undecided = ({ rest, whole }: Line) => !whole && /^(?:#{1,6}|`{1,2}|~{1,2}|\$|([-*_])(?:[ \t]*\1)*[ \t]*)$/.test(rest);

/** The columns that spaces and tabs take: a tab leads to the next of four. */
function columns(space: string): number {
  let n = 0;
  for (const c of space) n += c === "\t" ? 4 - (n % 4) : 1;
  return n;
}
