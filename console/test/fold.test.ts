import type { CanonicalEvent, Step } from "@waggle-dev/client";
import fc from "fast-check";
import { expect, test } from "vitest";
import { alignment } from "../src/fold/alignment.ts";
import { axis, type Bar, BarsBuilder } from "../src/fold/bars.ts";
import { drawn, layers } from "../src/fold/layers.ts";
import { fits, line } from "../src/fold/lines.ts";
import { plain, prose, target } from "../src/fold/text.ts";
import { dangling, kept, moved } from "../src/parts/steps.ts";

const nodes = fc.uniqueArray(
  fc.record({ id: fc.string({ maxLength: 3 }), needs: fc.array(fc.string({ maxLength: 3 }), { maxLength: 4 }) }),
  {
    selector: (n) => n.id,
    maxLength: 20,
  },
);

test("every step has a place of its own, right of all that it needs unless that is a cycle", () => {
  fc.assert(
    fc.property(nodes, (graph) => {
      const { places } = layers(graph);
      expect(new Set(places.map((p) => p.id))).toEqual(new Set(graph.map((n) => n.id)));
      expect(new Set(places.map((p) => `${p.layer} ${p.slot}`)).size).toBe(graph.length);
    }),
  );
  const acyclic = fc
    .integer({ min: 1, max: 15 })
    .chain((n) =>
      fc
        .tuple(...Array.from({ length: n }, (_, i) => fc.subarray(Array.from({ length: i }, (_, k) => String(k)))))
        .map((all) => all.map((needs, i) => ({ id: String(i), needs }))),
    );
  fc.assert(
    fc.property(acyclic, (graph) => {
      const { places, ways } = layers(graph);
      const at = new Map(places.map((p) => [p.id, p.layer]));
      for (const n of graph) for (const need of n.needs) expect(at.get(n.id)).toBeGreaterThan(at.get(need) as number);
      expect(ways.map((w) => `${w.from} ${w.to}`).sort()).toEqual(graph.flatMap((n) => n.needs.map((need) => `${need} ${n.id}`)).sort());
      const spots = [...places, ...ways.flatMap((w) => w.by)].map((s) => `${s.layer} ${s.slot}`);
      expect(new Set(spots).size).toBe(spots.length); // no line passes where a node or another line is
      for (const w of ways) {
        const [from, to] = [at.get(w.from) as number, at.get(w.to) as number];
        expect(w.by.map((s) => s.layer)).toEqual(Array.from({ length: to - from - 1 }, (_, i) => from + 1 + i));
      }
      const size = { width: 20, height: 10, gapX: 6, gapY: 4 };
      const picture = drawn(layers(graph), size);
      const nodes = [...picture.at.values()];
      for (const [i, a] of nodes.entries()) {
        expect(a.x >= 0 && a.x + size.width <= picture.width && a.y >= 0 && a.y + size.height <= picture.height).toBe(true);
        for (const b of nodes.slice(i + 1)) expect(a.x !== b.x || Math.abs(a.y - b.y) >= size.height).toBe(true);
      }
    }),
  );
});

test("a step of a plan is moved within the plan, and nowhere else", () => {
  const of = (ids: string) => [...ids].map((id) => ({ dropped: false, step: { id, title: id } as Step }));
  const ids = (all: ReturnType<typeof moved>) => all.map((s) => s.step.id).join("");
  const all = of("abcd");
  expect(ids(moved(all, "a", 2))).toBe("bcad");
  expect(ids(moved(all, "d", -3))).toBe("dabc");
  expect(ids(moved(all, "b", 9))).toBe("acdb");
  for (const same of [moved(all, "b", 1), moved(all, "a", -1), moved(all, "d", 4), moved(all, "x", 0)]) expect(same).toBe(all);
});

let seq = 0;
const event = (type: string, data: object, time = seq * 1000): CanonicalEvent =>
  ({ type, data, time: new Date(time).toISOString(), sequence: ++seq, id: String(seq) }) as unknown as CanonicalEvent;

test("a run has its bars, and its end leaves none open", () => {
  const w = new BarsBuilder();
  const run_id = "r";
  for (const e of [
    event("message.received", { run_id, message_id: "m" }),
    event("run.started", { run_id }),
    event("job.started", { run_id, job_id: "j", attempt: 1 }),
    event("message.started", { run_id, message_id: "a", model: "demo" }),
    event("message.completed", { run_id, message_id: "a" }),
    event("tool.called", { run_id, call_id: "c", tool: "charge" }),
    event("job.started", { run_id, job_id: "j", attempt: 2 }),
    event("tool.unknown", { run_id, call_id: "c" }),
    event("input.requested", { run_id, input_id: "q", scope: "tool", tool: "charge" }),
    event("run.cancelled", { run_id }),
  ])
    w.take(e);
  const { bars } = w.bars;
  expect(bars.map((b) => [b.kind, b.name, b.state])).toEqual([
    ["queue", "", "completed"],
    ["run", "", "cancelled"],
    ["job", "answer 1", "failed"],
    ["model", "demo", "completed"],
    ["tool", "charge", "unknown"],
    ["job", "answer 2", "cancelled"],
    ["people", "charge", "cancelled"],
  ]);
  expect(bars.every((b) => b.to !== undefined && b.to >= b.from)).toBe(true);
});

const types = [
  "message.received",
  "run.started",
  "run.completed",
  "job.started",
  "job.failed",
  "tool.called",
  "tool.completed",
  "step.started",
  "step.failed",
  "retry.scheduled",
];
const someEvents = fc.array(
  fc.record({ type: fc.constantFrom(...types), id: fc.constantFrom("a", "b"), time: fc.integer({ min: 0, max: 100_000 }) }),
  { maxLength: 60 },
);

test("whatever a log has in it, bars do not end before they begin, and each is on the axis", () => {
  fc.assert(
    fc.property(someEvents, (all) => {
      const w = new BarsBuilder();
      for (const { type, id, time } of all)
        w.take(event(type, { run_id: id, job_id: id, call_id: id, step_id: id, step: { id, title: id } }, time));
      const { bars, until } = w.bars;
      if (bars.length === 0) return;
      const { place } = axis(bars, until);
      for (const b of bars) {
        const to = b.to ?? until;
        expect(to).toBeGreaterThanOrEqual(b.from);
        expect(place(b.from)).toBeGreaterThanOrEqual(0);
        expect(place(to)).toBeLessThanOrEqual(100.001);
        expect(place(to)).toBeGreaterThanOrEqual(place(b.from));
      }
    }),
  );
});

test("long times in which nothing happens take little of the axis", () => {
  const bar = (from: number, to: number): Bar => ({ id: "", kind: "run", run: "", name: "", from, to, state: "completed", seq: 1 });
  const { place } = axis([bar(0, 100), bar(1_000_000, 1_000_100)], 1_000_100);
  expect(place(100)).toBeGreaterThan(45);
  expect(place(1_000_000) - place(100)).toBeLessThan(5);
});

test("a table is aligned as the line below its head says, whatever stands there", () => {
  expect(alignment("| A | B | C | D |\n|:-|-:|:-:|---|\n| 1 | 2 | 3 | 4 |")).toEqual(["start", "end", "center", "start"]);
  expect(alignment("A | B\n--|--:\n1 | 2")).toEqual(["start", "end"]);
  expect(alignment("| A |\nno line of dashes")).toEqual([]);
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom("|", "-", ":", " ", "\n", "a"), maxLength: 200 }), (text) => {
      for (const side of alignment(text)) expect(["start", "center", "end"]).toContain(side);
    }),
  );
});

test("a line says what happened", () => {
  for (const [type, data, text] of [
    [
      "usage.recorded",
      { model: "m", input_tokens: 812, cached_tokens: 12, output_tokens: 96, cost_usd: 0.00123456 },
      "812 tokens in (12 cached), 96 out · $0.00123 · m",
    ],
    ["usage.recorded", { model: "m", input_tokens: 1, output_tokens: 0 }, "1 tokens in, 0 out · m"],
    ["job.suspended", { inputs: ["in_1"] }, 'waits for an answer · ["in_1"]'],
    [
      "input.answered",
      { decision: "reject", by: "anna", tool: "write_file", feedback: "Too risky." },
      "reject · anna · write_file · Too risky.",
    ],
    ["step.cancelled", { step_id: "s2", title: "Second", reason: "dependency_failed" }, "s2 · Second · dependency_failed"],
  ] as const)
    expect(line(event(type, data))).toBe(text);
});

test("a line is short and a filter finds what it shows", () => {
  fc.assert(
    fc.property(fc.string(), fc.anything(), (text, value) => {
      const e = event("tool.called", { tool: text, arguments: JSON.stringify(value) });
      expect(line(e).length).toBeLessThanOrEqual(161);
      expect(fits(e, "")).toBe(true);
      expect(fits(e, "type:tool.")).toBe(true);
      expect(fits(e, "type:run")).toBe(false);
    }),
  );
  expect(fits(event("run.failed", { code: "MODEL_NOT_FOUND", message: "No such model." }), "type:run not_found")).toBe(true);
});

test("nothing is hidden in a text of others", () => {
  expect(plain("a\u202egnp.exe\u0007")).toBe("a⟨U+202E⟩gnp.exe⟨U+0007⟩");
  expect(prose("zero\u200bwidth\u{e0041}")).toBe("zerowidth");
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 60 }), (text) => {
      expect(plain(plain(text))).toBe(plain(text));
      expect(prose(plain(text))).toBe(plain(text));
    }),
  );
});

test("links lead to pages and mailboxes only", () => {
  for (const bad of ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "vbscript:x", "//x", "", "x"])
    expect(target(bad)).toBeUndefined();
  for (const good of ["https://a.example/b", "http://a", "mailto:a@b.example"]) expect(target(good)).toBeDefined();
});

test("a changed plan says which step lost what it needs", () => {
  const step = (id: string, ...dependencies: string[]): Step => ({ id, title: id, dependencies }) as Step;
  const all = [step("1"), step("2", "1"), step("3", "2")].map((s) => ({ step: s, dropped: false }));
  expect(dangling(all)).toBe(0);
  expect(dangling(all.with(0, { step: step("1"), dropped: true }))).toBe(2);
  expect(dangling([all[1], all[0], all[2]] as typeof all)).toBe(1);
  expect(kept(all.with(2, { step: step("3", "2"), dropped: true })).map((s) => s.id)).toEqual(["1", "2"]);
});

test("an announcement changes the row of its session, and an older one does not", async () => {
  const storage = { getItem: () => null, setItem: () => {} };
  Object.assign(globalThis, {
    document: { addEventListener: () => {}, documentElement: { dataset: {} } },
    sessionStorage: storage,
    localStorage: storage,
    location: { origin: "http://x", pathname: "/", search: "" },
  });
  const { announced } = await import("../src/model/lists.ts");
  const row = (session_id: string, last_seq: number, updated_at: string) => ({
    session_id,
    last_seq,
    updated_at,
    last_event: "",
    status: "open",
  });
  const rows = [row("a", 5, "2026-01-01T00:00:02Z"), row("b.c", 1, "2026-01-01T00:00:01Z")];
  const e = (type: string, sequence: number, data: object = {}) =>
    ({ type, sequence, data, subject: "default.session.b.c", time: "2026-01-01T00:00:03Z" }) as unknown as CanonicalEvent;
  const asked = announced(rows, e("message.received", 2, { content: "hi" }));
  expect(asked[0]).toMatchObject({ session_id: "b.c", question: "hi", state: "running", last_seq: 2 });
  expect(announced(asked, e("run.completed", 2))).toBe(asked);
  expect(announced(asked, e("run.completed", 9))[0]).toMatchObject({ state: "completed", last_seq: 9 });
  expect(announced(asked, e("run.completed", 9, { outcome: "partial_success" }))[0]).toMatchObject({ state: "partly" });
  expect(announced(asked, e("run.failed", 9))[0]).toMatchObject({ state: "failed" });
  expect(announced(asked, e("run.cancelled", 9))[0]).toMatchObject({ state: "cancelled" });
  expect(announced(asked, e("session.deleted", 10))).toHaveLength(1);
  expect(announced(rows, { ...e("run.completed", 9), subject: "default.team.a" } as CanonicalEvent)).toBe(rows);
});

test("the head of a session says how its last run ended", async () => {
  const { emptyState } = await import("../src/log/states.ts");
  const run = { run_id: "r1", execution_id: "x", attempt: 1 };
  const step = { id: "1", title: "one" };
  const said: [string, object][] = [["message.received", { message_id: "m", run_id: "r1", content: "hi" }]];
  const steps: [string, object][] = [
    ...said,
    ["plan.completed", { ...run, plan_id: "p", steps: [step], job_id: "j" }],
    ["step.started", { ...run, step, job_id: "k" }],
  ];
  const call = { ...run, call_id: "c", tool: "pay", arguments: {}, idempotent: false };
  for (const [want, events] of [
    ["idle", []],
    ["running", said],
    ["completed", [...said, ["run.completed", { ...run, message_id: "a", content: "there" }]]],
    ["failed", [...said, ["run.failed", { ...run, code: "MODEL_FAILED", message: "no" }]]],
    ["cancelled", [...said, ["run.cancelled", { ...run, reason: "user_request" }]]],
    [
      "unknown_outcome",
      [...said, ["tool.called", call], ["tool.unknown", { ...call, message: "?" }], ["run.completed", { ...run, content: "?" }]],
    ],
    [
      "partly",
      [
        ...steps,
        ["step.failed", { ...run, step_id: "1", code: "X", message: "no" }],
        ["run.completed", { ...run, outcome: "partial_success" }],
      ],
    ],
    [
      "running",
      [
        ...said,
        ["run.failed", { ...run, code: "X", message: "no" }],
        ["message.received", { message_id: "n", run_id: "r2", content: "again" }],
      ],
    ],
  ] as [string, [string, object][]][]) {
    const state = emptyState("session");
    let sequence = 0;
    const subject = "default.session.s";
    for (const [type, data] of [["session.created", {}] as [string, object], ...events])
      state.take({ type, data, subject, sequence: ++sequence, time: "2026-01-01T00:00:00Z" } as unknown as CanonicalEvent);
    expect(state.summary.state, events.map(([type]) => type).join()).toBe(want);
  }
});
