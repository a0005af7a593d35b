import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import type { CanonicalEvent, Snapshot } from "@waggle-dev/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonical } from "../src/fold/canonical.ts";
import type { Kind } from "../src/log/protocol.ts";
import { emptyState, type State, stateOf } from "../src/log/states.ts";

// The gateway's folds have written what each log says after each of its events. The folds of the console say the same, byte for byte.

const folder = new URL("../../gateway/snapshot/testdata/", import.meta.url);
const names = readdirSync(folder).flatMap((f) => (f.endsWith(".jsonl") ? [f.slice(0, -".jsonl".length)] : []));
const linesOf = (file: string) => readFileSync(new URL(file, folder), "utf8").trimEnd().split("\n");
const eventsOf = (name: string) => linesOf(`${name}.jsonl`).map((l) => JSON.parse(l) as CanonicalEvent);
const kindOf = (e: CanonicalEvent) => e.subject.split(".")[1] as string;
/** A member's log is folded as a session's. */
const stateFor = (kind: string) => emptyState((kind === "member" ? "session" : kind) as Kind);

/** What a fold says, as the server writes it. */
function snapshot(state: State, first: CanonicalEvent, e: CanonicalEvent): object {
  return { kind: kindOf(first), id: "golden", base: first.sequence, seq: e.sequence, type: e.type, time: e.time, ...state.image };
}

test("the logs are of every kind that has snapshots", () => {
  expect(new Set(names.map((n) => kindOf(eventsOf(n)[0] as CanonicalEvent)))).toEqual(new Set(["session", "member", "team", "task"]));
});

describe.each(names)("%s", (name) => {
  const events = eventsOf(name);
  const first = events[0] as CanonicalEvent;
  const kind = kindOf(first);

  test("every cut says what the gateway says", () => {
    const golden = linesOf(`${name}.golden`);
    expect(golden).toHaveLength(events.length);
    const state = stateFor(kind);
    for (const [i, e] of events.entries()) {
      state.take(e);
      const [hash, ...whole] = (golden[i] as string).split(" ");
      const text = canonical(snapshot(state, first, e));
      if (whole.length > 0) expect(JSON.parse(text)).toEqual(JSON.parse(whole.join(" ")));
      expect(createHash("sha256").update(text).digest("hex"), `after event ${e.sequence}, ${e.type}`).toBe(hash);
    }
  });

  test("a fold goes on from a snapshot as if it had made it", () => {
    const whole = stateFor(kind);
    for (const e of events) whole.take(e);
    const end = canonical(whole.image);
    fc.assert(
      fc.property(fc.nat(events.length - 1), (cut) => {
        const state = stateFor(kind);
        for (const e of events.slice(0, cut + 1)) state.take(e);
        const text = canonical(snapshot(state, first, events[cut] as CanonicalEvent));
        const restored = stateOf(JSON.parse(text) as Snapshot);
        expect(canonical(restored.image)).toBe(canonical(state.image));
        const fork = restored.fork();
        for (const e of events.slice(cut + 1)) fork.take(e);
        expect(canonical(fork.image)).toBe(end);
        expect(canonical(restored.image)).toBe(canonical(state.image));
      }),
      { numRuns: 30 },
    );
  });
});

test("the canonical form orders members by their UTF-16 units, and has numbers and texts as RFC 8785 does", () => {
  const value = { "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7, gone: undefined };
  const order = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\ud83d\ude00", "\ufb33"];
  const keys = [...canonical(value).matchAll(/"([^"]*)":/g)].map((m) => JSON.parse(`"${m[1]}"`));
  expect(keys).toEqual(order);
  expect(canonical([1e21, 1e-7, 0.1, -0, "\u2028\ud800", null])).toBe('[1e+21,1e-7,0.1,0,"\u2028\ufffd",null]');
});
