import type { Marks } from "./lines.ts";
import type { Summary } from "./protocol.ts";
import type { Reader } from "./reader.ts";

/** What a head line says of all events of a session, without reading them all: the first message, and unknown outcomes. */
export class Headline {
  private name = "";

  constructor(
    private readonly reader: Pick<Reader, "page">,
    private readonly marks: Marks,
    private readonly changed: () => void,
  ) {}

  /** Reads what it needs of the events before one of them, until all of them are read by others. */
  async read(base: number, others: () => boolean): Promise<void> {
    const [first] = (await this.reader.page("after=0&types=message.received&limit=1", false)).events;
    if (first?.type === "message.received") this.name = first.data.content;
    this.changed();
    for (let before = String(base); ; ) {
      const page = await this.reader.page(`before=${before}&types=tool.unknown&limit=1000`, false);
      for (const e of page.events) this.marks.note(e);
      this.changed();
      if (!page.more || !page.next || others()) return;
      before = page.next;
    }
  }

  /** Completes what a state says that begins with an event. */
  complete(summary: Summary, base: number): void {
    summary.name = this.name || summary.name;
    summary.unknowns += this.marks.unknowns(base);
  }
}
