import { signal } from "@preact/signals";
import {
  type CanonicalEvent,
  type LogPage,
  type QuestionAnswer,
  type QuestionOutcome,
  type TeamDefinition,
  type TeamView,
  WaggleError,
} from "@waggle-dev/client";
import { client, refusedLogin, say } from "../app.ts";
import { type Message, messageBody } from "../fold/message.ts";
import { patient } from "../log/patient.ts";
import { ended, whyEnded } from "./ended.ts";

/** A random id, for what may be sent twice and shall count once. Pages without TLS have no crypto.randomUUID. */
export function newId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
}

/** Makes a request until the server has answered it: it carries an id, so that repeating it changes nothing. */
export async function persist<T>(method: string, path: string, body?: unknown, onWait?: (waits: boolean) => void): Promise<T> {
  try {
    return await patient(() => client.call<T>(method, path, body), onWait ? { onWait } : {});
  } catch (error) {
    refusedLogin(error);
    throw error;
  }
}

/** Has a session named. Nothing is stored of it before its first message. */
export async function nameSession(): Promise<string> {
  return (await persist<{ session_id: string }>("POST", "/api/v1/sessions", {})).session_id;
}

/** Sends a message. It waits for the connection if there is none, and counts once. */
export function sendMessage(session: string, m: Message, onWait?: (waits: boolean) => void): Promise<unknown> {
  return persist("POST", `/api/v1/sessions/${encodeURIComponent(session)}/messages`, messageBody(m, newId()), onWait);
}

/** Sends the newest message of a session, which is before its last event, once more; it is answered in the same way. */
export async function askAgain(session: string, last: number): Promise<unknown> {
  const path = `/api/v1/logs/session/${encodeURIComponent(session)}/events?types=message.received&limit=1&before=${last}`;
  const { events } = await persist<LogPage & { events: CanonicalEvent[] }>("GET", path);
  const [message] = events;
  if (message?.type !== "message.received") return undefined;
  const { content, mode, agent, confirm_plan } = message.data;
  return sendMessage(session, {
    content,
    mode: mode === "plan" ? "plan" : "chat",
    confirm: confirm_plan ?? true,
    ...(agent ? { agent } : {}),
  });
}

const ofStep = (session: string, run: string, step: string, what: string) =>
  persist("POST", `/api/v1/sessions/${encodeURIComponent(session)}/runs/${encodeURIComponent(run)}/steps/${step}/${what}`, { id: newId() });

/** Has a step of a run done again, and the steps that need it. If the run is over, a new run does that. */
export function restartStep(session: string, run: string, step: string): Promise<unknown> {
  return ofStep(session, run, step, "restart");
}

/** Has a run go on without a step. */
export function skipStep(session: string, run: string, step: string): Promise<unknown> {
  return ofStep(session, run, step, "cancel");
}

/** Has another plan made for the last question of a session. */
export function planAgain(session: string): Promise<unknown> {
  return persist("POST", `/api/v1/sessions/${encodeURIComponent(session)}/replan`, { id: newId() });
}

/** Stops the active run of a session. */
export function stopRun(session: string): Promise<unknown> {
  return persist("POST", `/api/v1/sessions/${encodeURIComponent(session)}/cancel`);
}

/** The kind of log to end for good, once the reader has confirmed it. */
export const ending = signal<"close" | "delete" | undefined>(undefined);

/** Closes a session for good. Its log stays. */
export function closeSession(session: string): Promise<unknown> {
  return persist("POST", `/api/v1/sessions/${encodeURIComponent(session)}/close`);
}

/** Deletes a session with its log for good. */
export function deleteSession(session: string): Promise<unknown> {
  return persist("DELETE", `/api/v1/sessions/${encodeURIComponent(session)}`);
}

/** Answers a question. If it is over, for instance because another answer counts, it says so, and lists do not show it any more. */
export async function answer(question: string, a: Omit<QuestionAnswer, "id">, told = say): Promise<QuestionOutcome> {
  try {
    return await persist("POST", `/api/v1/questions/${encodeURIComponent(question)}/answer`, { ...a, id: newId() });
  } catch (error) {
    const why = whyEnded(error);
    if (why !== undefined) {
      ended.value = new Set([...ended.value, question]);
      told(why);
    }
    throw error;
  }
}

/** Makes a team: of a definition, or of the name of one in the gateway's configuration. */
export async function startTeam(team: TeamDefinition | { named: string }): Promise<string> {
  return (await client.call<TeamView>("POST", "/api/v1/teams", team)).team_id;
}

/** Sends a team a message, to a member or to its coordinator. It counts once. */
export function messageTeam(team: string, content: string, target: string): Promise<unknown> {
  return persist("POST", `/api/v1/teams/${encodeURIComponent(team)}/messages`, { id: newId(), content, ...(target ? { target } : {}) });
}

/** Pauses, resumes or stops a team. */
export function controlTeam(team: string, what: "pause" | "resume" | "stop"): Promise<unknown> {
  return persist("POST", `/api/v1/teams/${encodeURIComponent(team)}/${what}`);
}

/** Stops a team and closes it for good. */
export function closeTeam(team: string): Promise<unknown> {
  return persist("DELETE", `/api/v1/teams/${encodeURIComponent(team)}`);
}

/** Has a dead letter dealt with. If it is gone, an earlier try of this page or somebody else has done so. */
async function letter(method: string, path: string): Promise<void> {
  try {
    await persist(method, `/api/v1/dead-letters/${path}`);
  } catch (error) {
    if (!(error instanceof WaggleError) || error.status !== 404) throw error;
  }
}

/** Sends the command of a dead letter again. However often, its service carries it out once. */
export function resendLetter(seq: number): Promise<void> {
  return letter("POST", `${seq}/resend`);
}

/** Discards a dead letter for good. */
export function discardLetter(seq: number): Promise<void> {
  return letter("DELETE", String(seq));
}
