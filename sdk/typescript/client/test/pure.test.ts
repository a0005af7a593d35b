import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { expect, test } from "vitest";
import { within } from "../../testing/server.js";
import { Backoff, retryAfter } from "../src/backoff.js";
import { timeLimit } from "../src/deadline.js";
import { GapError, WaggleError } from "../src/failure.js";
import { until } from "../src/http.js";
import { finalClose } from "../src/link.js";
import { Position } from "../src/log.js";
import { base64url } from "../src/socket.js";
import { type SseMessage, SseParser } from "../src/sse.js";

const parse = (pieces: string[]): SseMessage[] => {
  const p = new SseParser();
  return pieces.flatMap((t) => p.push(t));
};

test("a stream is the same however it is cut into pieces, with every line ending", () => {
  const word = fc.string({ unit: "grapheme", maxLength: 12 }).map((s) => s.replace(/[\r\n]/g, ""));
  const message = fc.record({
    id: fc.option(fc.nat().map(String)),
    event: fc.option(fc.constantFrom("run.started", "gap")),
    data: fc.array(word, { minLength: 1, maxLength: 3 }),
    comment: fc.option(word),
  });
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 6 }),
      fc.constantFrom("\n", "\r\n", "\r"),
      fc.array(fc.nat(200), { maxLength: 20 }),
      (messages, end, cuts) => {
        let text = "";
        const want: SseMessage[] = [];
        for (const m of messages) {
          if (m.comment !== null) {
            text += `: ${m.comment}${end}`;
            want.push({ comment: m.comment });
          }
          if (m.id !== null) text += `id: ${m.id}${end}`;
          if (m.event !== null) text += `event: ${m.event}${end}`;
          for (const d of m.data) text += `data: ${d}${end}`;
          text += end;
          want.push({ data: m.data.join("\n"), ...(m.id === null ? {} : { id: m.id }), ...(m.event === null ? {} : { event: m.event }) });
        }
        const at = [0, ...cuts.map((c) => c % (text.length + 1)), text.length].sort((a, b) => a - b);
        expect(parse(at.slice(1).map((to, i) => text.slice(at[i], to)))).toEqual(want);
      },
    ),
    { numRuns: 2000 },
  );
});

test("any text is parsed without an error", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "binary" })), (pieces) => {
      parse(pieces);
    }),
    { numRuns: 2000 },
  );
});

test("fields without a colon, with one space and with two, and an unfinished message", () => {
  expect(parse(["data:a\ndata:  b\nid\nfoo: x\n\n", "data: never"])).toEqual([{ data: "a\n b", id: "" }]);
});

test("pauses double, lose up to half by chance, and begin anew", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 12, maxLength: 12 }), (chances) => {
      let i = 0;
      const b = new Backoff({ min: 100, max: 5000 }, () => chances[i++ % chances.length] as number);
      for (const full of [100, 200, 400, 800, 1600, 3200, 5000, 5000]) {
        const d = b.pause();
        expect(d).toBeGreaterThanOrEqual(full / 2);
        expect(d).toBeLessThanOrEqual(full);
      }
      b.reset();
      expect(b.pause()).toBeLessThanOrEqual(100);
    }),
  );
});

test("after a goodbye the first pause is short, and a server may ask for a longer one", () => {
  const b = new Backoff({ min: 100, max: 5000 }, () => 0);
  expect(b.pause({ goodbye: true })).toBe(0);
  expect(b.pause({ goodbye: true })).toBe(200);
  expect(b.pause({ retryAfter: 7000 })).toBe(7400);
  expect(retryAfter("7")).toBe(7000);
  expect(retryAfter("99999999")).toBe(300_000);
  expect(retryAfter(new Date(10_000).toUTCString(), 4000)).toBe(6000);
  expect([retryAfter(null), retryAfter("soon"), retryAfter(new Date(0).toUTCString())]).toEqual([0, 0, 0]);
});

test("a position takes each event once and in order, whatever comes", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 0, max: 3 })), { maxLength: 60 }), (spans) => {
      const p = new Position(0);
      const taken: number[] = [];
      for (const [from, more] of spans) {
        try {
          if (p.reach(from, from + more)) for (let i = from; i <= from + more; i++) taken.push(i);
        } catch (e) {
          expect(e).toBeInstanceOf(GapError);
          expect(from === p.at + 1).toBe(false);
        }
      }
      expect(taken).toEqual(taken.map((_, i) => i + 1));
      expect(p.at).toBe(taken.length);
    }),
    { numRuns: 3000 },
  );
});

test("codes say whether to come back", () => {
  expect([4400, 4401, 4404, 4410, 4499, 1002, 1008, 1009].every(finalClose)).toBe(true);
  expect([1000, 1001, 1006, 1011, 1012, 1013, 4000, 4001, 4399].some(finalClose)).toBe(false);
  expect(new WaggleError("OVERLOADED", "").retryable).toBe(true);
  expect(new WaggleError("SESSION_DELETED", "").retryable).toBe(false);
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 40 }), (t) => {
      expect(base64url(t)).toBe(Buffer.from(t).toString("base64url"));
    }),
  );
});

test("the time of a task is by the server's clock", () => {
  expect(timeLimit({ timestamp: "1999-01-01T00:00:00.000Z", deadline: "1999-01-01T00:01:00.000Z" })).toBe(60_000);
  expect(timeLimit({ timestamp: "2999-01-01T00:00:00.000Z", deadline: "2999-01-01T00:00:00.050Z" })).toBe(50);
  expect(timeLimit({ timestamp: "2026-01-01T00:00:01.000Z", deadline: "2026-01-01T00:00:00.000Z" })).toBe(0);
  for (const none of [undefined, {}, { timestamp: "2026-01-01T00:00:01.000Z" }, { timestamp: "x", deadline: "2026-01-01T00:00:00.000Z" }]) {
    expect(timeLimit(none)).toBeUndefined();
  }
});

test("a time-out fires though the collector has run since", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const late = until(new AbortController().signal, { timeoutMs: 50 });
  const fired = new Promise<void>((go) => late.addEventListener("abort", () => go(), { once: true }));
  collect();
  await new Promise((go) => setImmediate(go)); // weak references end with a turn of the loop
  collect();
  await within(fired, "the time-out");
  expect((late.reason as Error).name).toBe("TimeoutError");
});
