import type { SessionSummary } from "@waggle-dev/client";
import fc from "fast-check";
import { beforeAll, expect, test, vi } from "vitest";

vi.stubGlobal("localStorage", { getItem: () => null, setItem: () => undefined });

let m: typeof import("../src/model/columns.ts");
beforeAll(async () => {
  m = await import("../src/model/columns.ts");
});

const some = fc.record(
  {
    session_id: fc.uuid(),
    updated_at: fc.constantFrom("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"),
    duration_ms: fc.nat(5),
    cost_usd: fc.constantFrom(0, 0.5, 2),
    agent: fc.constantFrom("painter", "Scribe"),
    model: fc.constantFrom("demo", "large"),
  },
  { requiredKeys: ["session_id", "updated_at"] },
);

test("every order keeps all rows, is stable, and has rows without a value last, either way", () => {
  fc.assert(
    fc.property(fc.array(some), fc.constantFrom(...m.columns, "title" as const, "state" as const), fc.boolean(), (rows, by, down) => {
      const all = rows as unknown as SessionSummary[];
      const sorted = m.ordered(all, { by, down });
      expect(sorted).toHaveLength(all.length);
      expect(new Set(sorted)).toEqual(new Set(all));
      expect(m.ordered(sorted, { by, down })).toEqual(sorted);
      if (by !== "cost") return;
      const known = sorted.map((s) => s.cost_usd !== undefined);
      expect(known.indexOf(false) < 0 || known.slice(known.indexOf(false)).every((k) => !k)).toBe(true);
      const costs = sorted.flatMap((s) => (s.cost_usd === undefined ? [] : [s.cost_usd]));
      expect(costs).toEqual([...costs].sort((a, b) => (down ? b - a : a - b)));
    }),
  );
});

test("an agent of the swarm stands for the model that it uses", () => {
  expect(m.whoOf({ agent: "painter", model: "large" } as SessionSummary)).toBe("painter");
  expect(m.whoOf({ model: "large" } as SessionSummary)).toBe("large");
  expect(m.whoOf({} as SessionSummary)).toBe("");
});
