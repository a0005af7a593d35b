import { type TopicMessage, WaggleError } from "@waggle-dev/client";
import { faultOf } from "../log/fault.ts";
import { announcements, type Call, type News, type Wish } from "./protocol.ts";
import { type Keeping, perStream, Stream, type Topic } from "./stream.ts";

/** Streams of one principal. A browser has six connections for all tabs: requests need some, and streams that take over. */
const mostStreams = 3;

/** Changes within so long make one other stream. */
const pause = 20;

/** Announcements that are remembered: while one stream takes over from another they come twice. */
const memory = 256;

type Told = News extends infer N ? (N extends unknown ? Omit<N, "n"> : never) : never;

interface Want {
  readonly tab: Tab;
  readonly n: number;
  readonly topic: string;
}

interface Wanted extends Topic {
  readonly by: Set<Want>;
}

/** A tab, as the hub knows it. */
class Tab {
  circle: Circle | undefined;
  token = "";
  /** Whether it has said something since the last ping. */
  awake = true;
  readonly wants = new Map<number, Want>();

  constructor(private readonly port: MessagePort) {}

  tell(m: News | Call): void {
    this.port.postMessage(m);
  }

  /** Ends all that it wants, and forgets its token. */
  part(): void {
    for (const n of this.wants.keys()) this.circle?.leave(this, n);
    this.circle?.tabs.delete(this);
    this.circle = undefined;
    this.token = "";
  }
}

/** The streams of all tabs of a browser. Tabs of one principal share theirs; those of different ones have nothing in common. */
export class Hub {
  private readonly circles = new Map<string, Circle>();
  private readonly tabs = new Set<Tab>();

  /** A tab that does not answer within `maxWait` milliseconds is gone, or frozen by its browser. */
  constructor(
    private readonly origin: string,
    maxWait = 15_000,
  ) {
    setInterval(() => this.look(), maxWait);
  }

  /** Serves the tab at the other end of a port, until the returned function is called. */
  serve(port: MessagePort): () => void {
    const tab = new Tab(port);
    port.onmessage = ({ data }: MessageEvent<Wish>) => this.take(tab, data);
    return () => {
      port.close();
      this.drop(tab);
    };
  }

  private take(tab: Tab, w: Wish): void {
    tab.awake = true;
    if (w.do === "as") this.admit(tab, w.who, w.token);
    else if (w.do === "want") tab.circle?.want(tab, w);
    else if (w.do === "leave") tab.circle?.leave(tab, w.n);
  }

  private admit(tab: Tab, who: string, token: string): void {
    if (tab.circle?.who !== who) tab.part();
    let circle = this.circles.get(who);
    if (!circle) {
      circle = new Circle(who, this.origin);
      this.circles.set(who, circle);
    }
    this.tabs.add(tab);
    tab.circle = circle;
    tab.token = token;
    circle.tabs.delete(tab);
    circle.tabs.add(tab); // its token is the newest
  }

  private drop(tab: Tab): void {
    tab.part();
    this.tabs.delete(tab);
  }

  private look(): void {
    for (const tab of this.tabs) {
      if (!tab.awake) this.drop(tab);
      tab.tell({ do: tab.awake ? "ping" : "dropped" });
      tab.awake = false;
    }
  }
}

/** The tabs of one principal, what they want, and the streams that show it. */
class Circle implements Keeping {
  readonly tabs = new Set<Tab>();
  private readonly topics = new Map<string, Wanted>();
  private streams: Stream[] = [];
  private readonly seen = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private up = false;

  constructor(
    readonly who: string,
    readonly origin: string,
  ) {}

  want(tab: Tab, { n, topic, after }: { n: number; topic: string; after: number }): void {
    const known = this.topics.get(topic);
    const t = known ?? { name: topic, at: after, stream: undefined, by: new Set<Want>() };
    const w = { tab, n, topic };
    t.by.add(w);
    tab.wants.set(n, w);
    if (!known) {
      this.topics.set(topic, t);
      this.arrange();
    } else if (topic === announcements) {
      if (this.up) tab.tell({ do: "up", n, up: true });
    } else if (t.at > after) tab.tell({ do: "head", n, seq: t.at });
  }

  leave(tab: Tab, n: number): void {
    const w = tab.wants.get(n);
    tab.wants.delete(n);
    const t = w && this.topics.get(w.topic);
    if (!w || !t?.by.delete(w) || t.by.size > 0) return;
    this.topics.delete(t.name);
    this.arrange();
  }

  private arrange(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.settle();
    }, pause);
  }

  /** Has each topic on a stream, those first that were asked for last. */
  private settle(): void {
    for (const s of this.streams) for (const t of s.all) if (this.topics.get(t.name) !== t) s.remove(t);
    for (const s of this.streams.splice(Math.ceil(this.topics.size / perStream))) {
      for (const t of s.all) s.remove(t);
      s.close();
    }
    for (const t of [...this.topics.values()].reverse()) {
      if (t.stream) continue;
      let s = this.streams.find((s) => s.fits(t));
      if (!s && this.streams.length < mostStreams) {
        s = new Stream(this);
        this.streams.push(s);
      }
      s?.add(t);
    }
    for (const s of this.streams) s.renew();
    this.changed();
  }

  token(): string {
    return [...this.tabs].at(-1)?.token ?? "";
  }

  changed(): void {
    const t = this.topics.get(announcements);
    const up = t?.stream?.shows(t) ?? false;
    if (up === this.up) return;
    this.up = up;
    if (t) this.tell(t, { do: "up", up });
  }

  missed(): void {
    const t = this.topics.get(announcements);
    if (t) this.tell(t, { do: "up", up: true });
  }

  take(m: TopicMessage): void {
    if (m.log === undefined) {
      const t = this.topics.get(announcements);
      if (t && this.fresh(`${m.event.subject} ${m.event.sequence}`)) this.tell(t, { do: "event", event: m.event });
      return;
    }
    const t = this.topics.get(m.log);
    if (!t) return;
    if ("error" in m) this.end(t, m.error);
    else if ("first" in m) this.tell(t, { do: "first", seq: m.first });
    else if (m.event.sequence > t.at) {
      t.at = m.event.sequence;
      this.tell(t, { do: "event", event: m.event });
    }
  }

  failed(s: Stream, error: unknown, token: string): void {
    if (!(error instanceof WaggleError) || error.status !== 401) {
      for (const t of s.all) this.end(t as Wanted, error);
      return;
    }
    for (const tab of this.tabs) {
      if (tab.token !== token) continue;
      for (const w of tab.wants.values()) tab.tell({ do: "over", n: w.n, error: faultOf(error) });
      tab.part();
    }
    s.spoil(); // it comes back with the token of another tab, if there is one
    this.arrange();
  }

  /** Tells all that want a topic that it is over. */
  private end(t: Wanted, error: unknown): void {
    this.tell(t, { do: "over", error: faultOf(error) });
    for (const w of t.by) w.tab.wants.delete(w.n);
    this.topics.delete(t.name);
    t.stream?.remove(t, true);
  }

  private tell(t: Wanted, m: Told): void {
    for (const { tab, n } of t.by) tab.tell({ ...m, n } as News);
  }

  /** Whether an announcement has not come before. */
  private fresh(key: string): boolean {
    if (this.seen.has(key)) return false;
    const [oldest] = this.seen;
    if (oldest !== undefined && this.seen.size >= memory) this.seen.delete(oldest);
    this.seen.add(key);
    return true;
  }
}
