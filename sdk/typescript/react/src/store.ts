import type { CanonicalEvent, ConnectionState, Watched } from "@waggle-dev/client";

/** What hooks show of a log: a value that changes with its events. */
export interface Snapshot<V> {
  view: V;
  connection: ConnectionState;
}

const away: ConnectionState = { connected: false, error: undefined, ended: false };

/** How long a log is still read after the last component that shows it has gone: another one may come at once. */
const grace = 1000;

/** One log and the components that show it. It is read while there are any. */
export class Store<L extends Watched, V> {
  private readonly listeners = new Set<() => void>();
  private builder: { view: V; take(e: CanonicalEvent): void };
  private opened: L | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private told = false;
  private last: Snapshot<V>;

  constructor(
    private readonly open: () => L,
    private readonly builderOf: () => { view: V; take(e: CanonicalEvent): void },
    private readonly forget: () => void,
  ) {
    this.builder = builderOf();
    this.last = { view: this.builder.view, connection: away };
  }

  /** The log. */
  get log(): L {
    if (!this.opened) {
      this.builder = this.builderOf();
      this.opened = this.open();
    }
    return this.opened;
  }

  readonly snapshot = (): Snapshot<V> => this.last;

  readonly subscribe = (listener: () => void): (() => void) => {
    clearTimeout(this.timer);
    this.listeners.add(listener);
    if (this.listeners.size === 1) this.begin();
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.timer = setTimeout(() => this.end(), grace);
    };
  };

  private reading = false;

  private begin(): void {
    if (this.reading) return;
    this.reading = true;
    const log = this.log;
    log.onConnection((connection) => this.change({ connection }));
    log.on((e) => {
      this.builder.take(e);
      this.later();
    });
  }

  private end(): void {
    this.opened?.close();
    this.opened = undefined;
    this.reading = false;
    this.forget();
  }

  /** Shows what has come once for many events. */
  private later(): void {
    if (this.told) return;
    this.told = true;
    setTimeout(() => {
      this.told = false;
      this.change({ view: this.builder.view });
    }, 16);
  }

  private change(s: Partial<Snapshot<V>>): void {
    this.last = { ...this.last, ...s };
    for (const f of this.listeners) f();
  }
}
