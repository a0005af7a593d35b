/**
 * A session in a component of Vue.
 *
 * @packageDocumentation
 */
import { getCurrentInstance, onMounted, onScopeDispose, type ShallowRef, shallowRef } from "vue";
import type { WaggleClient } from "./client.js";
import type { ConnectionState } from "./hub.js";
import type { Question, Reply } from "./questions.js";
import type { Run } from "./run.js";
import type { SendOptions, Session } from "./session.js";
import { sessionStore } from "./store.js";
import type { View } from "./view.js";

/** A session in a component. */
export interface UseSession {
  id: string;
  /** The session, until the component is unmounted. */
  session: () => Session;
  /** What a page shows: its items, the open questions, the active runs. A message that is being sent is `pending`. */
  view: Readonly<ShallowRef<View>>;
  connection: Readonly<ShallowRef<ConnectionState>>;
  send: (text: string, o?: SendOptions) => Run;
  answer: (question: Question | string, reply: Reply | boolean) => Promise<void>;
  cancel: () => Promise<void>;
}

/** Shows a session, from its first event on, until the component is unmounted or the effect scope stops. Without an id it is a new one. */
export function useSession(client: WaggleClient, id?: string): UseSession {
  const name = id ?? client.session().id;
  const store = sessionStore(client, name, id === undefined);
  const view = shallowRef(store.snapshot().view);
  const connection = shallowRef(store.snapshot().connection);
  const show = () => {
    const now = store.snapshot();
    view.value = now.view;
    connection.value = now.connection;
  };
  let leave = () => {};
  const begin = () => {
    leave = store.subscribe(show);
    show();
  };
  if (getCurrentInstance())
    onMounted(begin); // not on a server that renders pages
  else begin();
  onScopeDispose(() => leave());
  return {
    id: name,
    session: () => store.log,
    view,
    connection,
    send: store.send,
    answer: (q, r) => store.log.answer(q, r),
    cancel: () => store.log.cancel(),
  };
}
