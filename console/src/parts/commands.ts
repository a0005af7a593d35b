import type { SessionSummary } from "@waggle-dev/client";
import { client, copy, login, mayAct, me, nextDensity, nextTheme, nextTongue, nextZone, reason, say, signedIn, signOut } from "../app.ts";
import { apiOf, curlOf } from "../fold/api.ts";
import { docs, pages } from "../fold/docs.ts";
import { over, rooms } from "../keys.ts";
import { askAgain, controlTeam, ending, stopRun } from "../model/act.ts";
import { choose, chosen, compareChosen } from "../model/compare.ts";
import { saveLog } from "../model/log.ts";
import { cancelTask, retryTask } from "../model/swarm.ts";
import { after, go, type Route, room, route, sessionViews, swarmTabs, taskViews, teamViews } from "../route.ts";
import { installationTab, shownTabs } from "../turns.ts";
import { t, type Word } from "../words.ts";
import { mode } from "./composer.tsx";

/** Something that the palette offers. */
export interface Choice {
  id: string;
  text: string;
  run: () => void;
  /** It is offered to those who look for it only. */
  hidden?: boolean;
  /** The keys that do the same. */
  keys?: string;
}

/** Does something that may be refused, and says so. */
const tries = (f: () => Promise<unknown>) => () => void f().catch((e) => say(reason(e)));

/** Where one can go, and how things are shown: the same in every room. */
function everywhere(): Choice[] {
  const all: Choice[] = rooms.map(({ name, key }) => ({
    id: name,
    text: t(`nav.${name}` as Word),
    run: () => go(room(name)),
    keys: `g ${key}`,
  }));
  for (const tab of swarmTabs.slice(1))
    all.push({ id: `swarm ${tab}`, text: `${t("nav.swarm")}: ${t(`swarm.${tab}`)}`, run: () => go({ room: "swarm", tab }), hidden: true });
  for (const tab of shownTabs().filter((tab) => tab !== "health"))
    all.push({
      id: `installation ${tab}`,
      text: `${t("nav.installation")}: ${t(`installation.${tab}`)}`,
      run: () => go(installationTab(tab)),
      hidden: true,
    });
  for (const [state, word] of [
    ["failed", "state.failed"],
    ["unknown_outcome", "state.unknown"],
    ["waiting", "state.waiting"],
    ["running", "state.running"],
  ] as const)
    all.push({
      id: `state ${state}`,
      text: `${t("nav.sessions")}: ${t(word)}`,
      run: () => go({ ...room("sessions"), state } as Route),
      hidden: true,
    });
  for (const [name, file] of pages)
    all.push({
      id: `docs ${file}`,
      text: t("palette.docs", { page: name }),
      run: () => void open(docs + file, "_blank", "noopener"),
      hidden: true,
    });
  if (mayAct.value)
    all.push({ id: "plan", text: t("palette.plan"), run: newPlan }, { id: "answer", text: t("palette.answer"), run: nextQuestion });
  all.push(
    { id: "theme", text: t("theme"), run: nextTheme, keys: "t" },
    { id: "zone", text: t("zone"), run: nextZone, keys: "z" },
    { id: "density", text: t("density"), run: nextDensity },
    { id: "language", text: t("language"), run: nextTongue },
    {
      id: "keys",
      text: t("keys.title"),
      run: () => {
        over.value = "keys";
      },
      keys: "?",
    },
    signedIn.value
      ? { id: "out", text: t("login.out"), run: signOut }
      : {
          id: "in",
          text: t("login.title"),
          run: () => {
            login.value = "asks";
          },
        },
  );
  return all;
}

function newPlan(): void {
  mode.value = "plan";
  go(room("playground"));
  requestAnimationFrame(() => document.querySelector<HTMLElement>(".composer textarea")?.focus());
}

/** Shows the question that ends first, with the focus on it. */
function nextQuestion(): void {
  go(room("questions"));
  requestAnimationFrame(() => document.querySelector<HTMLElement>("main [data-question]")?.focus());
}

/** What can be done with what is shown. */
function here(): Choice[] {
  const r = route.value;
  const all: Choice[] = [{ id: "link", text: t("session.link"), run: () => void copy(location.href) }];
  const path = apiOf(r);
  if (path) all.push({ id: "curl", text: t("palette.curl"), run: () => void copy(curlOf(location.origin, path, signedIn.value)) });
  if (chosen.value.length === 2) all.push({ id: "compare", text: t("compare.two"), run: () => void compareChosen(undefined), keys: "d" });
  all.push(...viewsOf(r));
  if ("at" in r && r.at !== undefined)
    all.push({ id: "live", text: t("session.live"), run: () => go({ ...r, at: undefined } as unknown as Route, "replace") });
  if (r.room === "sessions" && r.id !== undefined) all.push(...ofSession(r.id));
  if (r.room === "teams" && r.id !== undefined && mayAct.value) {
    const id = r.id;
    for (const what of ["pause", "resume", "stop"] as const)
      all.push({ id: what, text: `${t("nav.teams")}: ${t(`team.${what}`)}`, run: tries(() => controlTeam(id, what)) });
    all.push({ id: "close", text: `${t("nav.teams")}: ${t("team.close")}`, run: end("close") });
  }
  if (r.room === "task" && mayAct.value) {
    const { id } = r;
    all.push(
      { id: "cancel task", text: t("task.cancel"), run: tries(() => cancelTask(id)) },
      {
        id: "retry task",
        text: t("task.retry"),
        run: tries(async () => go({ room: "task", id: await retryTask(id), view: "work" })),
      },
    );
  }
  const log = logOf(r);
  if (log) all.push({ id: "export", text: t("session.export"), run: tries(() => saveLog(...log)) });
  return all;
}

/** Asks for confirmation to end the log that is shown for good. */
const end = (what: "close" | "delete") => () => {
  ending.value = what;
};

/** What can be done with a session. */
function ofSession(id: string): Choice[] {
  const all: Choice[] = [{ id: "compare this", text: t("compare.this"), run: () => void (compareChosen(id) || choose(id)), keys: "x" }];
  if (me.value?.may.includes("operate"))
    all.push({
      id: "viewers",
      text: t("palette.viewers"),
      run: () => go({ ...room("installation"), tab: "connections", entity: id } as Route),
    });
  if (!mayAct.value) return all;
  const last = async () => (await client.call<SessionSummary>("GET", `/api/v1/sessions/${encodeURIComponent(id)}/summary`)).last_seq;
  all.push(
    { id: "stop", text: t("palette.stop"), run: tries(() => stopRun(id)) },
    { id: "again", text: t("session.again"), run: tries(async () => askAgain(id, (await last()) + 1)) },
    { id: "close", text: t("session.close"), run: end("close") },
    { id: "delete", text: t("session.delete"), run: end("delete") },
  );
  return all;
}

/** The other views of what is shown, the next and the previous one with their keys. */
function viewsOf(r: Route): Choice[] {
  const of = <V extends string>(all: readonly V[], now: V, text: (v: V) => string, to: (v: V) => Route): Choice[] =>
    all
      .filter((v) => v !== now)
      .map((v) => ({
        id: `view ${v}`,
        text: `${t("palette.view")}: ${text(v)}`,
        run: () => go(to(v), "replace"),
        ...(v === after(all, now, 1) ? { keys: "]" } : v === after(all, now, -1) ? { keys: "[" } : {}),
      }));
  if (r.room === "task")
    return of(
      taskViews,
      r.view,
      (v) => t(`task.${v}`),
      (view) => ({ ...r, view }),
    );
  if (r.room === "teams" && r.id !== undefined)
    return of(
      teamViews,
      r.view,
      (v) => t(v === "log" ? "session.log" : `team.${v}`),
      (view) => ({ ...r, view }),
    );
  if (r.room !== "sessions" || r.id === undefined) return [];
  return of(
    sessionViews,
    r.view,
    (v) => t(`session.${v}`),
    (view) => ({ ...r, view }),
  );
}

function logOf(r: Route): ["session" | "team" | "task", string, number | undefined] | undefined {
  if (r.room === "task") return ["task", r.id, r.at];
  if (r.room !== "sessions" && r.room !== "teams") return undefined;
  return r.id === undefined ? undefined : [r.room === "teams" ? "team" : "session", r.id, r.at];
}

/** The commands whose text has the words; a number is an event of the log that is shown. */
export function commands(q: string): Choice[] {
  const words = q.trim().toLowerCase().split(/\s+/);
  const fits = (c: Choice) => (q.trim() === "" ? !c.hidden : words.every((w) => c.text.toLowerCase().includes(w)));
  const all = [...everywhere(), ...here()].filter(fits);
  const r = route.value;
  const seq = /^\d+$/.test(q.trim()) ? Number(q) : 0;
  if (seq > 0 && logOf(r)) all.unshift({ id: "at", text: t("palette.at", { seq }), run: () => go({ ...r, at: seq } as Route, "replace") });
  return all;
}
