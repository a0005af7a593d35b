import fc from "fast-check";
import { expect, test } from "vitest";
import { queryOf } from "../src/model/filter.ts";

const now = new Date(2026, 10, 29, 15, 4);
const midnight = (month: number, date: number) => new Date(2026, month - 1, date).toISOString();

test("a filter of sessions names principals, protocols and days, and all else is looked for", () => {
  const cases: Record<string, Record<string, string>> = {
    "": {},
    "  refund   order ": { q: "refund order" },
    "by:ann refund via:orbit order": { principal: "ann", dialect: "orbit", q: "refund order" },
    "since:yesterday until:yesterday": { since: midnight(11, 28), until: midnight(11, 29) },
    "since:2026-11-01 until:today": { since: midnight(11, 1), until: midnight(11, 30) },
    "by: since:soon until:2026-02-30 note:this": { q: "by: since:soon until:2026-02-30 note:this" },
    "by:https://id.example/ann:1": { principal: "https://id.example/ann:1" },
  };
  for (const [text, want] of Object.entries(cases)) expect(Object.fromEntries(queryOf(text, now)), text).toEqual(want);
});

test("whatever is typed, no word is lost", () => {
  const word = fc.oneof(fc.string(), fc.stringMatching(/^(by|via|since|until):.*$/), fc.constantFrom("by:ann", "since:today"));
  fc.assert(
    fc.property(fc.array(word), (all) => {
      const query = queryOf(all.join(" "), now);
      const left = (query.get("q") ?? "").split(" ");
      const taken = ["by", "via", "since", "until"].map((n) => `${n}:`);
      for (const w of all.join(" ").trim().split(/\s+/))
        if (!taken.some((n) => w.startsWith(n))) expect(w === "" || left.includes(w)).toBe(true);
    }),
  );
});
