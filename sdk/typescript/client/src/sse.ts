/** A message of a stream of server-sent events, or a comment line (`comment` alone). */
export interface SseMessage {
  id?: string;
  event?: string;
  data?: string;
  comment?: string;
}

/** Takes a stream of server-sent events apart. Give it the text as it comes, in pieces of any size. */
export class SseParser {
  private rest = "";
  private id: string | undefined;
  private event: string | undefined;
  private data: string[] = [];
  private skipLF = false;

  /** Returns the messages that end in the next piece of the text. */
  push(piece: string): SseMessage[] {
    const out: SseMessage[] = [];
    let text = this.rest + piece;
    let start = 0;
    if (this.skipLF && text !== "") {
      if (text.charCodeAt(0) === 10) text = text.slice(1);
      this.skipLF = false;
    }
    for (let i = this.rest.length; i < text.length; i++) {
      const c = text.charCodeAt(i);
      if (c !== 10 && c !== 13) continue;
      this.line(text.slice(start, i), out);
      if (c === 13) {
        if (i + 1 === text.length) this.skipLF = true;
        else if (text.charCodeAt(i + 1) === 10) i++;
      }
      start = i + 1;
    }
    this.rest = text.slice(start);
    return out;
  }

  private line(line: string, out: SseMessage[]): void {
    if (line === "") {
      if (this.data.length > 0) {
        const m: SseMessage = { data: this.data.join("\n") };
        if (this.id !== undefined) m.id = this.id;
        if (this.event !== undefined) m.event = this.event;
        out.push(m);
      }
      this.id = this.event = undefined;
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) {
      out.push({ comment: line.slice(line.charCodeAt(1) === 32 ? 2 : 1) });
      return;
    }
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line.charCodeAt(colon + 1) === 32 ? colon + 2 : colon + 1);
    if (name === "data") this.data.push(value);
    else if (name === "id") this.id = value;
    else if (name === "event") this.event = value;
  }
}

/** Reads the body of an answer as server-sent events, until it ends. */
export async function* readSse(body: ReadableStream<Uint8Array>): AsyncGenerator<SseMessage> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new SseParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
