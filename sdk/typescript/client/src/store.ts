/**
 * What components show of a session or a team: one reading of a log for all components. The hooks for React, Vue and Svelte use it.
 *
 * @packageDocumentation
 */
import type { WaggleClient } from "./client.js";
import type { CanonicalEvent } from "./generated/events.js";
import type { ConnectionState, Watched } from "./hub.js";
import type { Run } from "./run.js";
import type { SendOptions, Session } from "./session.js";
import type { Team } from "./teams.js";
import { type TeamView, TeamViewBuilder, type View, ViewBuilder } from "./view.js";

/** What components show of a log: a value that changes with its events. */
export interface Snapshot<V> {
  view: V;
  connection: ConnectionState;
}

const away: ConnectionState = { connected: false, error: undefined, ended: false };

/** How long a log is still read after the last component that shows it has gone: another one may come at once. */
const grace = 1000;

/** Makes a value of events. */
export interface Builder<V> {
  readonly view: V;
  take(e: CanonicalEvent): void;
}

/** One log and the components that show it. It is read while there are any. */
export class Store<L extends Watched, V, B extends Builder<V> = Builder<V>> {
  private readonly listeners = new Set<() => void>();
  private builder: B;
  private opened: L | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private told = false;
  private last: Snapshot<V>;

  constructor(
    private readonly open: () => L,
    private readonly builderOf: () => B,
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

  /** Changes the view by something other than an event of the log. */
  edit(change: (builder: B) => void): void {
    change(this.builder);
    this.later();
  }

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

/** A session that components show. */
export class SessionStore extends Store<Session, View, ViewBuilder> {
  /** Sends a message, which is shown at once, as `pending`, until the log has it or the server refuses it. */
  readonly send = (text: string, o?: SendOptions): Run => {
    const run = this.log.send(text, o);
    this.edit((b) => b.send(run.id, text));
    const drop = () => this.edit((b) => b.drop(run.id));
    run.result().then(drop, drop);
    return run;
  };
}

/** A team that components show. */
export type TeamStore = Store<Team, TeamView, TeamViewBuilder>;

const stores = new WeakMap<WaggleClient, { sessions: Map<string, SessionStore>; teams: Map<string, TeamStore> }>();

function of(client: WaggleClient) {
  const s = stores.get(client) ?? { sessions: new Map(), teams: new Map() };
  stores.set(client, s);
  return s;
}

/** The store of a session, the same for all components. `fresh` says that the session has no message yet. */
export function sessionStore(client: WaggleClient, id: string, fresh = false): SessionStore {
  const { sessions } = of(client);
  let s = sessions.get(id);
  if (!s) {
    s = new SessionStore(
      () => client.session(id, { fresh }),
      () => new ViewBuilder(),
      () => sessions.delete(id),
    );
    sessions.set(id, s);
  }
  return s;
}

/** The store of a team, the same for all components. */
export function teamStore(client: WaggleClient, id: string): TeamStore {
  const { teams } = of(client);
  let s = teams.get(id);
  if (!s) {
    s = new Store(
      () => client.team(id),
      () => new TeamViewBuilder(),
      () => teams.delete(id),
    );
    teams.set(id, s);
  }
  return s;
}
