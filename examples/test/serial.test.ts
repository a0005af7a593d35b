import { expect, test } from "vitest";
import { type Frame, opening, Serial, whole } from "../assistant-ui/src/serial.js";

interface Event extends Frame {
  n: number;
}

/** Numbers from 0 to 1, the same ones for a seed. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** What one step says: thoughts, texts, and calls with results, as the events that it makes. */
function step(id: string, random: () => number): Frame[] {
  const out: Frame[] = [{ type: "SUBAGENT_STARTED", subagentRunId: id }];
  const of = { subagentRunId: id };
  const several = (e: Frame) => Array.from({ length: Math.floor(random() * 4) }, () => ({ ...of, ...e }));
  for (let n = 0; n < 4; n++) {
    const messageId = `${id}-${n}`;
    const kind = random();
    if (kind < 0.3) {
      out.push({ type: "REASONING_START", messageId, ...of }, { type: "REASONING_MESSAGE_START", messageId, ...of });
      out.push(...several({ type: "REASONING_MESSAGE_CONTENT", messageId }));
      out.push({ type: "REASONING_MESSAGE_END", messageId, ...of }, { type: "REASONING_END", messageId, ...of });
      continue;
    }
    out.push({ type: "TEXT_MESSAGE_START", messageId, ...of }, ...several({ type: "TEXT_MESSAGE_CONTENT", messageId }));
    out.push({ type: "TEXT_MESSAGE_END", messageId, ...of });
    if (kind < 0.6) continue;
    const toolCallId = `${messageId}-call`;
    out.push({ type: "TOOL_CALL_START", toolCallId, parentMessageId: messageId, ...of });
    out.push(...several({ type: "TOOL_CALL_ARGS", toolCallId }), { type: "TOOL_CALL_END", toolCallId, ...of });
    out.push({ type: "ACTIVITY_SNAPSHOT" }, { type: "TOOL_CALL_RESULT", toolCallId, messageId: `${toolCallId}-result`, ...of });
  }
  out.push({ type: "SUBAGENT_FINISHED", ...of });
  return out;
}

/** The steps side by side, in any interleaving. */
function interleaved(random: () => number): Event[] {
  const steps = Array.from({ length: 1 + Math.floor(random() * 4) }, (_, i) => step(`s${i}`, random));
  const out: Frame[] = [];
  while (steps.some((s) => s.length > 0)) {
    const some = steps.filter((s) => s.length > 0);
    const one = some[Math.floor(random() * some.length)] as Frame[];
    out.push(...one.splice(0, 1 + Math.floor(random() * 3)));
  }
  return [{ type: "RUN_STARTED" }, ...out, { type: "RUN_FINISHED" }].map((e, n) => ({ ...e, n }));
}

const isOf = (e: Frame) => (e.type.startsWith("TOOL_CALL") ? e.toolCallId : e.messageId);

/** The reader of assistant-ui: a text or call that goes on after another has begun is mangled. */
function mangled(events: readonly Event[]): Event[] {
  const wrong: Event[] = [];
  let open: string | undefined;
  let depth = 0;
  for (const e of events) {
    if (!/^(TEXT_MESSAGE|REASONING|TOOL_CALL)_/.test(e.type) || e.type === "TOOL_CALL_RESULT") continue;
    if (open !== undefined && isOf(e) !== open) wrong.push(e);
    if (open === undefined && !e.type.endsWith("_START")) wrong.push(e);
    depth += e.type.endsWith("_START") ? 1 : e.type.endsWith("_END") ? -1 : 0;
    open = depth > 0 ? isOf(e) : undefined;
  }
  return wrong;
}

test("whatever the interleaving, one message, thought or call is open at a time, nothing is lost, and what belongs together is in order", () => {
  let interleavings = 0;
  for (let seed = 1; seed <= 500; seed++) {
    const events = interleaved(chance(seed));
    if (mangled(events).length > 0) interleavings++;
    const serial = new Serial<Event>();
    const out = [...events.flatMap((e) => serial.take(e)), ...serial.end()];
    const about = `seed ${seed}`;
    expect(mangled(out), about).toEqual([]);
    expect(
      out.map((e) => e.n).sort((a, b) => a - b),
      about,
    ).toEqual(events.map((e) => e.n));
    expect([out[0]?.type, out.at(-1)?.type], about).toEqual(["RUN_STARTED", "RUN_FINISHED"]);
    for (const of of new Set(events.map((e) => e.subagentRunId))) {
      const those = out.filter((e) => e.subagentRunId === of && /^(SUBAGENT|TEXT|REASONING|TOOL)/.test(e.type)).map((e) => e.n);
      expect(those, about).toEqual([...those].sort((a, b) => a - b));
    }
  }
  expect(interleavings).toBeGreaterThan(200);
});

test("without anything side by side, each event comes through at once", () => {
  const events = step("a", chance(7)).map((e, n) => ({ ...e, n }));
  const serial = new Serial<Event>();
  for (const e of events) expect(serial.take(e)).toEqual([e]);
  expect(serial.end()).toEqual([]);
});

test("what is held back comes when its turn is, and at the latest with the end of the events", () => {
  const serial = new Serial<Frame>();
  const [a, b] = ["a", "b"].map((messageId) => ["START", "CONTENT", "END"].map((t) => ({ type: `TEXT_MESSAGE_${t}`, messageId })));
  const [a1, a2, a3] = a as [Frame, Frame, Frame];
  const [b1, b2, b3] = b as [Frame, Frame, Frame];
  const call = { type: "TOOL_CALL_START", toolCallId: "c", parentMessageId: "a" };
  expect([a1, b1, a2, b2].map((e) => serial.take(e))).toEqual([[a1], [], [a2], []]);
  expect([a3, call, { type: "TOOL_CALL_END", toolCallId: "c" }].flatMap((e) => serial.take(e))).toHaveLength(3); // the call is a's
  expect(serial.take({ type: "ACTIVITY_SNAPSHOT" })).toEqual([b1, b2, { type: "ACTIVITY_SNAPSHOT" }]);
  expect(serial.take(a1)).toEqual([]);
  expect(serial.end()).toEqual([a1]);
  expect(serial.take(b3)).toEqual([b3]);
});

test("the messages of the server stand for what is held back and has ended; what has not comes with its own events", () => {
  const serial = new Serial<Frame>();
  const text = (t: string, messageId: string) => ({ type: `TEXT_MESSAGE_${t}`, messageId });
  const held = [text("START", "a"), text("START", "b"), text("END", "b"), text("START", "c")];
  expect(held.flatMap((e) => serial.take(e))).toEqual([held[0]]);
  const messages = ["a", "c", "u"].map((id) => ({ id, role: "assistant" })); // b was discarded
  const snapshot = { type: "MESSAGES_SNAPSHOT", messages };
  expect(serial.take(snapshot)).toEqual([{ ...snapshot, messages: [messages[0], messages[2]] }]);
  expect(serial.take(text("END", "a"))).toEqual([text("END", "a")]);
  expect(serial.end()).toEqual([text("START", "c")]);
});

test("a joined thread has messages that are being written from their own events alone", () => {
  const messages = ["a", "b", "c"].map((id) => ({ id, role: "assistant", content: `text of ${id}` }));
  const start = (messageId: string, type = "TEXT_MESSAGE_START") => ({ type, messageId });
  const first: Frame[] = [{ type: "RUN_STARTED" }, { type: "MESSAGES_SNAPSHOT", messages }, { type: "ACTIVITY_SNAPSHOT" }];
  first.push(start("b"), start("c", "REASONING_START"), start("c", "REASONING_MESSAGE_START"), start("d"));
  expect(first.map(opening)).not.toContain(false);
  expect(["TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"].some((type) => opening({ type }))).toBe(false);
  expect(whole(first)).toEqual([
    first[0],
    { type: "MESSAGES_SNAPSHOT", messages: [messages[0]] },
    first[2],
    start("b"),
    { type: "TEXT_MESSAGE_CONTENT", messageId: "b", delta: "text of b" },
    start("c", "REASONING_START"),
    start("c", "REASONING_MESSAGE_START"),
    { type: "REASONING_MESSAGE_CONTENT", messageId: "c", delta: "text of c" },
    start("d"),
  ]);
  expect(whole([])).toEqual([]);
});
