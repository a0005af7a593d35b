import type { CanonicalEvent } from "@waggle-dev/client";
import { ViewBuilder } from "@waggle-dev/client/view";
import fc from "fast-check";
import { expect, test } from "vitest";
import { columns, statuses } from "../src/fold/board.ts";
import { lanes, span } from "../src/fold/sequence.ts";
import { TeamFold } from "../src/fold/team.ts";
import type { Report } from "../src/log/protocol.ts";
import { emptyState } from "../src/log/states.ts";
import { type Patch, rowsOf, Views } from "../src/log/views.ts";
import { agents, Log, large, routes } from "./teamlog.ts";

const whats = ["message", "message", "drop", "run", "ask", "answer", "tasks", "work", "work"];
const logs = fc.array(fc.record({ what: fc.constantFrom(...whats), n: fc.nat(30) }), { maxLength: 60, size: "max" }).map((deeds) => {
  const log = new Log();
  for (const d of deeds) log.do(d.what, d.n);
  return log;
});

const fold = (events: readonly CanonicalEvent[], f = new TeamFold()): TeamFold => {
  for (const e of events) f.take(e);
  return f;
};
const picture = (f: TeamFold) => ({
  rows: rowsOf(f),
  arrows: f.arrows,
  sides: f.sides,
  tasks: f.tasks,
  talks: f.members.map((m) => f.talk(m.route)),
  status: f.status,
});

test("a fold that goes on from a copy shows the same, and the copy stays as it was", () => {
  fc.assert(
    fc.property(logs, fc.nat(), ({ events }, n) => {
      const at = n % (events.length + 1);
      const first = fold(events.slice(0, at));
      const before = structuredClone(picture(first));
      const copy = first.fork();
      const whole = picture(fold(events));
      expect(picture(fold(events.slice(at), copy))).toEqual(whole);
      expect(picture(first)).toEqual(before);
      expect(picture(fold(events.slice(at), first))).toEqual(whole);
    }),
  );
});

test("each message is one arrow between two lifelines, and each one that was dropped says so", () => {
  fc.assert(
    fc.property(logs, fc.nat(), ({ events }, n) => {
      const f = fold(events);
      const types = events.map((e) => (e.type === "team.sub_team_event" ? (e.data.sub_team_event as CanonicalEvent) : e));
      const messages = types.flatMap((e, i) => (e.type === "team.message" ? [i + 1] : []));
      expect(f.arrows.filter((a) => a.from !== a.to || a.text !== "").map((a) => a.seq)).toEqual(messages);
      const dropped = new Set(types.flatMap((e) => (e.type === "team.message_dropped" ? [`${e.data.message_id} ${e.data.member}`] : [])));
      expect(new Set(f.arrows.flatMap((a) => (a.dropped ? [`${a.id} ${a.to.split("/").at(-1)?.replace("@", "")}`] : [])))).toEqual(dropped);
      for (const a of f.arrows) expect(f.sides).toContain(a.from);
      for (const a of f.arrows) expect(f.sides).toContain(a.to);
      // An earlier moment has the same lifelines, as far as they go.
      const early = fold(events.slice(0, n % (events.length + 1)));
      expect(f.sides.slice(0, early.sides.length)).toEqual(early.sides);
      for (const a of f.arrows) if (a.handed) expect(a.from).toBe("@docs");
      for (const a of f.arrows) if (a.handed) expect(f.sender("docs/Editor", a.id)).not.toBe("@docs");
    }),
  );
});

test("a member waits for people exactly as long as a question of it is open, and for those whose tasks come first", () => {
  fc.assert(
    fc.property(logs, (log) => {
      const { waits } = fold(log.events);
      for (const route of routes) {
        const of = waits.get(route) ?? [];
        expect(of.some((w) => w.for === "people")).toBe(log.asked.some((q) => q.route === route));
        const first = log.tasks
          .filter((t) => t.assignee_name === route && t.status !== "completed" && t.status !== "failed")
          .flatMap((t) => t.dependencies)
          .map((id) => log.tasks.find((t) => t.task_id === id))
          .filter((t) => t?.status !== "completed");
        const tasks = of.flatMap((w) => (w.for === "member" ? [`${w.route} ${w.task}`] : []));
        expect(new Set(tasks)).toEqual(new Set(first.map((t) => `${t?.assignee_name} ${t?.task_id}`)));
        expect(tasks.length).toBe(new Set(tasks).size);
      }
    }),
  );
});

test("every member has one row, below its team; the conversation of each is that of its own log", () => {
  fc.assert(
    fc.property(logs, ({ events }) => {
      const f = fold(events);
      expect(f.members.map((m) => m.route)).toEqual(routes);
      for (const route of agents) {
        const own = new ViewBuilder();
        for (const e of events) {
          const x = e.type === "team.sub_team_event" ? (e.data.sub_team_event as CanonicalEvent) : e;
          const path = e.type === "team.sub_team_event" ? `${e.data.sub_team_node_name}/` : "";
          if (x.type === "team.member_event" && path + x.data.member_name === route) own.take(x.data.event as CanonicalEvent);
        }
        expect(f.talk(route)?.items ?? []).toEqual(own.view.items);
      }
    }),
  );
});

test("members that no definition names stand below their team", () => {
  const log = new Log();
  for (const n of [1, 2, 3, 0]) log.do("run", n);
  const f = fold(log.events.slice(2));
  expect(f.members.map((m) => [m.route, m.kind])).toEqual([
    ["Writer", "agent"],
    ["docs", "team"],
    ["docs/Editor", "agent"],
    ["docs/Reader", "agent"],
    ["Lead", "agent"],
  ]);
});

test("each task is in one column, and known states have theirs", () => {
  fc.assert(
    fc.property(logs, ({ events }) => {
      const { tasks } = fold(events);
      const all = columns(tasks);
      expect(all.slice(0, statuses.length).map((c) => c.status)).toEqual(statuses);
      expect(all.flatMap((c) => c.tasks.map((t) => t.id)).sort()).toEqual(tasks.map((t) => t.id).sort());
    }),
  );
});

test("lifelines keep apart and in order, arrows end at them, and the text of an arrow in view is in view", () => {
  const view = fc.record({ left: fc.nat(4000), width: fc.integer({ min: 300, max: 2500 }) });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 500 }), fc.nat(), fc.nat(), view, (n, a, b, v) => {
      const l = lanes(n, v.width);
      expect(l.at(n - 1) + l.gap / 2).toBeLessThanOrEqual(l.width + 0.001);
      const [from, to] = [l.at(a % n), l.at(b % n)];
      const s = span(from, to, v);
      expect(s.left).toBe(Math.min(from, to));
      if (from !== to) expect(s.left + s.width).toBeCloseTo(Math.max(from, to));
      const inView = Math.max(from, to) - 10 > v.left + 72 && Math.min(from, to) + 10 < v.left + v.width - 228;
      if (inView) expect(s.text).toBeGreaterThanOrEqual(Math.min(v.left + 72, s.left + 10));
      if (inView) expect(s.text).toBeLessThanOrEqual(v.left + v.width);
    }),
  );
});

test("the page gets the messages that are in view, and nothing where nothing has changed", () => {
  const state = emptyState("team");
  const events = large(50, 10_000);
  for (const e of events.slice(0, -1)) state.take(e);
  const views = new Views("messages", "");
  const take = (): Omit<Extract<Report, { do: "patch" }>, "log"> => {
    const patch: Patch = { do: "patch", seq: 0 };
    views.put(patch, state, false, false);
    return patch;
  };
  const first = take();
  expect(first.arrows?.length).toBe(9999);
  expect(first.arrows?.arrows.length).toBeLessThanOrEqual(40);
  expect(first.arrows?.arrows.at(-1)?.id).toBe("x9998");
  expect(take()).toEqual({ do: "patch", seq: 0 });
  views.show(5000, 5030);
  const moved = take();
  expect([moved.arrows?.from, moved.arrows?.arrows.length]).toEqual([5000, 30]);
  expect(moved.members).toBeUndefined();
  state.take(events.at(-1) as CanonicalEvent);
  expect(take().arrows?.length).toBe(10_000);
});
