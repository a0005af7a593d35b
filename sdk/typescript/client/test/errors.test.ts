import { readFile } from "node:fs/promises";
import { WaggleError } from "@waggle-dev/client";
import * as errors from "@waggle-dev/client/errors";
import { expect, expectTypeOf, test } from "vitest";

test("each code has a class, under the name that it has in Python", async () => {
  const python = await readFile(new URL("../../../python/src/waggle/errors.py", import.meta.url), "utf8");
  const names = [...python.matchAll(/^class (\w+)\(WaggleError\)/gm)].map((m) => m[1] as string);
  expect(names.length).toBeGreaterThan(40);
  expect(Object.keys(errors)).toEqual(expect.arrayContaining(names));
});

test("an error is of the class of its code, and of no other", () => {
  const error: unknown = new WaggleError("SESSION_NOT_FOUND", "no such session", { status: 404 });
  expect(error).toBeInstanceOf(errors.WaggleError);
  expect(error instanceof errors.SessionNotFoundError).toBe(true);
  expect(error instanceof errors.TaskNotFoundError).toBe(false);
  expect({ code: "SESSION_NOT_FOUND" } instanceof errors.SessionNotFoundError).toBe(false);
  if (error instanceof errors.SessionNotFoundError) {
    expectTypeOf(error.code).toEqualTypeOf<"SESSION_NOT_FOUND">();
    expectTypeOf(error.status).toEqualTypeOf<number>();
  }
  const gap: WaggleError = new errors.GapError(1, 3, 4);
  expect(gap instanceof errors.GapError).toBe(true);
});
