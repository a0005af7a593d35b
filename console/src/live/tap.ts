import { announcements, type Call, type News, type Wish } from "./protocol.ts";

interface Followed {
  topic: string;
  /** The last event of the log that has come. */
  after: number;
  take: (n: News) => void;
}

/** The end of a tab at the hub: topics can be followed before it is plugged in, and across hubs. */
export class Tap {
  private port: MessagePort | undefined;
  private as: { who: string; token: string } | undefined;
  private readonly followed = new Map<number, Followed>();
  private count = 0;

  /** Goes on at this port. */
  plug(port: MessagePort): void {
    this.port?.close();
    this.port = port;
    port.onmessage = ({ data }: MessageEvent<News | Call>) => this.take(data);
    this.ask();
  }

  /** Says whose topics are followed, with which token. */
  identify(who: string, token: string): void {
    const other = this.as?.who !== who;
    this.as = { who, token };
    if (other) this.ask();
    else this.say({ do: "as", who, token });
  }

  /** Follows a topic, of a log the events behind one of them, until the returned function is called. */
  follow(topic: string, after: number, take: (n: News) => void): () => void {
    const n = ++this.count;
    this.followed.set(n, { topic, after, take });
    this.say({ do: "want", n, topic, after });
    return () => {
      if (this.followed.delete(n)) this.say({ do: "leave", n });
    };
  }

  private say(w: Wish): void {
    if (this.as) this.port?.postMessage(w);
  }

  /** Asks for everything. */
  private ask(): void {
    if (!this.as) return;
    this.say({ do: "as", ...this.as });
    for (const [n, { topic, after }] of this.followed) this.say({ do: "want", n, topic, after });
  }

  private take(m: News | Call) {
    if (m.do === "ping") return this.say({ do: "here" });
    if (m.do === "dropped") return this.ask();
    const f = this.followed.get(m.n);
    if (!f) return;
    if (m.do === "over") this.followed.delete(m.n);
    if (m.do === "event" && f.topic !== announcements) f.after = m.event.sequence;
    f.take(m);
  }
}
