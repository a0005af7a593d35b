/**
 * A session in a component of Svelte.
 *
 * @packageDocumentation
 */
import { type Readable, readable } from "svelte/store";
import type { WaggleClient } from "./client.js";
import type { ConnectionState } from "./hub.js";
import type { Question, Reply } from "./questions.js";
import type { Run } from "./run.js";
import type { SendOptions, Session } from "./session.js";
import { type Snapshot, sessionStore } from "./store.js";
import type { View } from "./view.js";

/** A session in a component. */
export interface UseSession {
  id: string;
  /** The session, while a component shows it. */
  session: () => Session;
  /** What a page shows: its items, the open questions, the active runs. A message that is being sent is `pending`. */
  view: Readable<View>;
  connection: Readable<ConnectionState>;
  send: (text: string, o?: SendOptions) => Run;
  answer: (question: Question | string, reply: Reply | boolean) => Promise<void>;
  cancel: () => Promise<void>;
}

/** Shows a session, from its first event on, while a component subscribes to a store. Without an id it is a new one. */
export function useSession(client: WaggleClient, id?: string): UseSession {
  const name = id ?? client.session().id;
  const store = sessionStore(client, name, id === undefined);
  const part = <T>(of: (s: Snapshot<View>) => T) =>
    readable(of(store.snapshot()), (set) => {
      const show = () => set(of(store.snapshot()));
      let leave: (() => void) | undefined = () => {};
      queueMicrotask(() => {
        if (leave) leave = store.subscribe(show); // a server that renders a page has unsubscribed
      });
      show();
      return () => {
        leave?.();
        leave = undefined;
      };
    });
  return {
    id: name,
    session: () => store.log,
    view: part((s) => s.view),
    connection: part((s) => s.connection),
    send: store.send,
    answer: (q, r) => store.log.answer(q, r),
    cancel: () => store.log.cancel(),
  };
}
