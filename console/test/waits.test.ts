import fc from "fast-check";
import { expect, test } from "vitest";
import { layers } from "../src/fold/layers.ts";
import { TeamFold } from "../src/fold/team.ts";
import { people, waitGraph } from "../src/fold/waits.ts";
import type { MemberRow } from "../src/log/protocol.ts";
import { rowsOf } from "../src/log/views.ts";
import { Log, large } from "./teamlog.ts";

const whats = ["run", "ask", "ask", "answer", "tasks", "work", "work", "message"] as const;
const logs = fc.array(fc.tuple(fc.constantFrom(...whats), fc.nat(100)), { maxLength: 40 }).map((all) => {
  const log = new Log();
  for (const [what, n] of all) log.do(what, n);
  return log.events;
});

test("at each event of a team, the graph has each wait in one arrow, and those alone that wait or are waited for", () => {
  fc.assert(
    fc.property(logs, (events) => {
      const fold = new TeamFold();
      for (const e of events) {
        fold.take(e);
        const rows = rowsOf(fold);
        const { nodes, arrows } = waitGraph(rows);
        const waits = rows.flatMap((m) =>
          m.waits.filter((w) => w.for === "people" || w.route !== m.route).map((w) => [m.route, w] as const),
        );
        const drawn = arrows.flatMap((a) => a.waits.map((w) => [a.from, w] as const));
        expect(new Set(drawn.map((x) => JSON.stringify(x)))).toEqual(new Set(waits.map((x) => JSON.stringify(x))));
        expect(drawn.length).toBe(waits.length);
        for (const a of arrows) for (const w of a.waits) expect(a.to).toBe(w.for === "people" ? people : w.route);
        expect(new Set(arrows.map((a) => JSON.stringify([a.from, a.to]))).size).toBe(arrows.length);
        expect(arrows.findLastIndex((a) => a.to === people) + 1).toBe(arrows.filter((a) => a.to === people).length); // they come first
        expect(new Set(nodes.map((n) => n.id))).toEqual(new Set(arrows.flatMap((a) => [a.from, a.to])));
      }
    }),
    { numRuns: 60 },
  );
});

const row = (route: string, ...waits: MemberRow["waits"]): MemberRow => ({
  route,
  name: route,
  kind: "agent",
  role: "",
  status: "",
  waits,
});
const on = (route: string, task: string) => ({ for: "member", route, task, name: task }) as const;

test("two that wait for each other are drawn beside each other, and one that waits for its own work is not", () => {
  const rows = [row("A", on("B", "t1")), row("B", on("A", "t2"), on("B", "t3")), row("C", on("C", "t4"))];
  const { nodes, arrows } = waitGraph(rows);
  expect(nodes.map((n) => n.id)).toEqual(["A", "B"]);
  expect(arrows.map((a) => `${a.from}>${a.to}`)).toEqual(["A>B", "B>A"]);
  const { places, ways } = layers(nodes.map((n) => ({ id: n.id, needs: arrows.filter((a) => a.to === n.id).map((a) => a.from) })));
  expect(places).toHaveLength(2);
  expect(ways).toHaveLength(1); // the other one goes back, below the nodes
});

test("a member that the team does not know is waited for by its name", () => {
  const { nodes } = waitGraph([row("A", on("desk/Editor", "t1"), { for: "people", scope: "tool", tool: "write" })]);
  expect(nodes.map((n) => [n.id, n.name, n.member !== undefined])).toEqual([
    ["A", "A", true],
    [people, "", false],
    ["desk/Editor", "Editor", false],
  ]);
});

test("in a team of 500 members each one that waits for people has its arrow to them", () => {
  const fold = new TeamFold();
  for (const e of large(500, 10)) fold.take(e);
  const rows = rowsOf(fold);
  const asking = rows.filter((m) => m.waits.some((w) => w.for === "people")).map((m) => m.route);
  expect(asking.length).toBeGreaterThan(100);
  expect(
    waitGraph(rows)
      .arrows.filter((a) => a.to === people)
      .map((a) => a.from),
  ).toEqual(asking);
});
