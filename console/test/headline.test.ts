import type { CanonicalEvent } from "@waggle-dev/client";
import { expect, test } from "vitest";
import { Headline } from "../src/log/headline.ts";
import { Marks } from "../src/log/lines.ts";
import type { Summary } from "../src/log/protocol.ts";

const unknown = (sequence: number) => ({ type: "tool.unknown", sequence, data: {} }) as unknown as CanonicalEvent;
const first = { type: "message.received", sequence: 1, data: { content: "Count the words" } } as unknown as CanonicalEvent;

/** Pages of a log as the gateway gives them. */
class Pages {
  readonly asked: string[] = [];
  page = async (query: string) => {
    this.asked.push(query);
    const base = { kind: "session", id: "s", expired: 0 };
    if (query.startsWith("after=0")) return { ...base, events: [first], more: true } as never;
    if (query.startsWith("before=900&")) return { ...base, events: [unknown(500), unknown(800)], more: true, next: "500" } as never;
    return { ...base, events: [unknown(20)], more: false } as never;
  };
}

const summary = (): Summary => ({ name: "later", state: "idle", unknowns: 1, status: "" });

test("the first message and the unknown outcomes before a state are read, and complete what it says", async () => {
  const pages = new Pages();
  const headline = new Headline(pages, new Marks(), () => {});
  const before = summary();
  headline.complete(before, 900);
  expect(before).toEqual(summary());
  await headline.read(900, () => false);
  expect(pages.asked.map((q) => q.split("&")[0])).toEqual(["after=0", "before=900", "before=500"]);
  const after = summary();
  headline.complete(after, 900);
  expect(after).toMatchObject({ name: "Count the words", unknowns: 4 });
  const earlier = summary();
  headline.complete(earlier, 700);
  expect(earlier.unknowns).toBe(3);
});

test("it stops where all events are read by others", async () => {
  const pages = new Pages();
  await new Headline(pages, new Marks(), () => {}).read(900, () => true);
  expect(pages.asked.length).toBe(2);
});
