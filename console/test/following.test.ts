import { expect, test } from "vitest";
import type { News } from "../src/live/protocol.ts";
import { Following } from "../src/log/following.ts";

/** A tap that notes what is followed. */
class Topics {
  readonly said: string[] = [];
  hear: (n: News) => void = () => {};
  follow = (topic: string, after: number, hear: (n: News) => void) => {
    this.said.push(`${topic} after ${after}`);
    this.hear = hear;
    return () => void this.said.push("left");
  };
}

test("a log is followed once, from what is known when it is known, and left", async () => {
  const topics = new Topics();
  const f = new Following(topics, "session/s", () => {});
  const first = f.start(async () => 7);
  await f.start(async () => 8);
  await first;
  expect(topics.said).toEqual(["session/s after 7"]);
  f.stop();
  f.stop();
  expect(topics.said).toEqual(["session/s after 7", "left"]);
  await f.start(async () => 9);
  expect(topics.said.at(-1)).toBe("session/s after 9");
});

test("a log that is left before anything of it is known is not followed, and of two starts the last one counts", async () => {
  const topics = new Topics();
  const f = new Following(topics, "session/s", () => {});
  const first = f.start(async () => 1);
  f.stop();
  const second = f.start(async () => 2);
  await Promise.all([first, second]);
  expect(topics.said).toEqual(["session/s after 2"]);
});

test("nothing is followed of an empty log", async () => {
  const topics = new Topics();
  await new Following(topics, "session/s", () => {}).start(async () => undefined);
  expect(topics.said).toEqual([]);
});

test("a log whose following the hub has ended can be followed again", async () => {
  const topics = new Topics();
  const heard: News["do"][] = [];
  const f = new Following(topics, "session/s", (n) => heard.push(n.do));
  await f.start(async () => 1);
  topics.hear({ do: "over" } as News);
  f.stop();
  await f.start(async () => 2);
  expect(heard).toEqual(["over"]);
  expect(topics.said).toEqual(["session/s after 1", "session/s after 2"]);
});
