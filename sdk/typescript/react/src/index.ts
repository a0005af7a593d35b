/**
 * React hooks for sessions, runs, questions and teams.
 *
 * @packageDocumentation
 */
import type {
  Answer,
  ConnectionState,
  Question,
  Reply,
  Run,
  SendOptions,
  Session,
  Team,
  TeamMessageOptions,
  WaggleClient,
} from "@waggle-dev/client";
import { type SessionStore, sessionStore, type TeamStore, teamStore } from "@waggle-dev/client/store";
import { emptyTeamView, emptyView, type TeamView, type View } from "@waggle-dev/client/view";
import {
  createContext,
  createElement,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";

const Context = createContext<WaggleClient | undefined>(undefined);

/** Gives the hooks below it their client. */
export function WaggleProvider(props: { client: WaggleClient; children?: ReactNode }): ReactNode {
  return createElement(Context.Provider, { value: props.client }, props.children);
}

/** The client of the provider above. */
export function useWaggle(): WaggleClient {
  const client = useContext(Context);
  if (!client) throw new Error("useWaggle needs a WaggleProvider above it");
  return client;
}

/** A session in a component. */
export interface UseSession {
  id: string;
  session: Session;
  /** What a page shows: its items, the open questions, the runs that are on. */
  view: View;
  connection: ConnectionState;
  send: (text: string, o?: SendOptions) => Run;
  answer: (question: Question | string, reply: Reply | boolean) => Promise<void>;
  cancel: () => Promise<void>;
}

/** How a component uses a session. */
export interface UseSessionOptions {
  /** Tools that the page carries out, for each message that the component sends. A call runs the function of the newest render. */
  tools?: NonNullable<SendOptions["tools"]>;
}

/**
 * Shows a session, from its first event on, as long as a component uses it. Without an id it is a new one. A message that the
 * component sends is shown at once, as `pending`, until the log has it.
 */
export function useSession(id?: string, o: UseSessionOptions = {}): UseSession {
  const client = useWaggle();
  const [own] = useState(() => id ?? client.session().id);
  const name = id ?? own;
  const store = useMemo(() => sessionStore(client, name, id === undefined), [client, name, id]);
  const newest = useRef(o.tools);
  useEffect(() => {
    newest.current = o.tools;
  });
  const { view, connection } = useSyncExternalStore(store.subscribe, store.snapshot, () => ({
    view: emptyView,
    connection: store.snapshot().connection,
  }));
  return {
    id: name,
    session: store.log,
    view,
    connection,
    send: useCallback((text, of) => store.send(text, withTools(newest, of)), [store]),
    answer: useCallback((q, r) => store.log.answer(q, r), [store]),
    cancel: useCallback(() => store.log.cancel(), [store]),
  };
}

/** The options of a message with the tools of the component, whose functions are looked up when they are called. */
function withTools(newest: { current: UseSessionOptions["tools"] }, o: SendOptions = {}): SendOptions {
  const tools = Object.entries(newest.current ?? {}).map(([name, tool]) => {
    const run: typeof tool.run = (args) => (newest.current?.[name] ?? tool).run(args);
    return [name, { ...tool, run }];
  });
  return tools.length === 0 ? o : { ...o, tools: { ...Object.fromEntries(tools), ...o.tools } };
}

/** A run in a component. */
export interface UseRun {
  status: "none" | "running" | "completed" | "failed";
  /** The text of the answer so far. */
  text: string;
  answer: Answer | undefined;
  error: unknown;
}

const noRun: UseRun = { status: "none", text: "", answer: undefined, error: undefined };

/** Shows how a run comes along. */
export function useRun(run: Run | undefined): UseRun {
  const [state, setState] = useState<{ run: Run | undefined; shown: UseRun }>({ run: undefined, shown: noRun });
  useEffect(() => {
    if (!run) return;
    let gone = false;
    const set = (s: Partial<UseRun>) => {
      if (!gone) setState((old) => ({ run, shown: { ...(old.run === run ? old.shown : noRun), status: "running", ...s } }));
    };
    set({});
    const read = async () => {
      for await (const text of run.text()) {
        if (gone) return;
        set({ text });
      }
      const answer = await run.result();
      set({ status: "completed", answer, text: answer.text });
    };
    read().catch((error) => set({ status: "failed", error }));
    return () => {
      gone = true;
    };
  }, [run]);
  if (!run) return noRun;
  return state.run === run ? state.shown : { ...noRun, status: "running" };
}

/** The open questions of a session or of a team, and how they are answered. */
export interface UseQuestions {
  questions: readonly Question[];
  answer: (question: Question, reply: Reply | boolean) => Promise<void>;
}

/** Shows the open questions of a session, or of a team. */
export function useQuestions(of: { session: string } | { team: string }): UseQuestions {
  const client = useWaggle();
  const [kind, id] = "session" in of ? (["session", of.session] as const) : (["team", of.team] as const);
  const store: SessionStore | TeamStore = useMemo(
    () => (kind === "session" ? sessionStore(client, id) : teamStore(client, id)),
    [client, kind, id],
  );
  const { view } = useSyncExternalStore<{ view: View | TeamView }>(store.subscribe, store.snapshot, store.snapshot);
  return { questions: view.questions, answer: useCallback((q, r) => store.log.answer(q, r), [store]) };
}

/** A team in a component. */
export interface UseTeam {
  team: Team;
  /** Its status, its members, what they say, and the open questions. */
  view: TeamView;
  connection: ConnectionState;
  message: (text: string, o?: TeamMessageOptions) => Promise<string>;
  answer: (question: Question, reply: Pick<Reply, "approved" | "feedback" | "arguments"> | boolean) => Promise<void>;
  stop: () => Promise<void>;
}

/** Shows a team, from its first event on, as long as a component uses it. */
export function useTeam(id: string): UseTeam {
  const client = useWaggle();
  const store = useMemo(() => teamStore(client, id), [client, id]);
  const { view, connection } = useSyncExternalStore(store.subscribe, store.snapshot, () => ({
    view: emptyTeamView,
    connection: store.snapshot().connection,
  }));
  return {
    team: store.log,
    view,
    connection,
    message: useCallback((text, o) => store.log.message(text, o), [store]),
    answer: useCallback((q, r) => store.log.answer(q, r), [store]),
    stop: useCallback(() => store.log.stop(), [store]),
  };
}
