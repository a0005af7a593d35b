import type { AuditCheck } from "@waggle-dev/client";
import { expect, test } from "vitest";
import { Verification } from "../src/model/verify.ts";

const part = (records: number, next?: string): AuditCheck => ({
  records,
  of: 30,
  first: 1,
  last: 30,
  oldest: "",
  newest: "",
  chains: 1,
  begun: 0,
  unlinked: 0,
  lost: 0,
  faults: [],
  ...(next ? { next } : {}),
});

test("the parts of a check follow each other until none is left", async () => {
  const asked: (string | undefined)[] = [];
  const parts = [part(10, "a"), part(20, "b"), part(30)];
  const v = new Verification(async (next) => {
    asked.push(next);
    return parts[asked.length - 1] as AuditCheck;
  });
  await v.start();
  expect(asked).toEqual([undefined, "a", "b"]);
  expect(v.state.value).toBe("done");
  expect(v.found.value?.records).toBe(30);
});

test("a check that fails resumes where it was, and a new one begins at the beginning", async () => {
  const asked: (string | undefined)[] = [];
  const v = new Verification(async (next) => {
    asked.push(next);
    if (asked.length === 2) throw new Error("no answer");
    return asked.length === 1 ? part(10, "a") : part(30);
  });
  await v.start();
  expect(v.state.value).toBe("failed");
  expect(v.found.value?.records).toBe(10);
  await v.resume();
  expect(v.state.value).toBe("done");
  await v.start();
  expect(asked).toEqual([undefined, "a", "a", undefined]);
});

test("an answer that comes after a stop changes nothing", async () => {
  let answer = (_: AuditCheck) => {};
  const v = new Verification(
    () =>
      new Promise((ok) => {
        answer = ok;
      }),
  );
  const over = v.start();
  v.stop();
  answer(part(30));
  await over;
  expect(v.state.value).toBe("stopped");
  expect(v.found.value).toBeUndefined();
});
