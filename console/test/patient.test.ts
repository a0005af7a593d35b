import { WaggleError } from "@waggle-dev/client";
import { expect, test, vi } from "vitest";
import { patient } from "../src/log/patient.ts";

test("a refusal that waiting does not change is told at once, and anything else is tried again", async () => {
  vi.useFakeTimers();
  const answers = (...all: (WaggleError | string)[]) => {
    let tries = 0;
    const waits: boolean[] = [];
    const done = patient(
      async () => {
        const one = all[Math.min(tries++, all.length - 1)];
        if (one instanceof Error) throw one;
        return one;
      },
      { onWait: (w) => waits.push(w) },
    ).then(
      (text) => text,
      (error: WaggleError) => error.code,
    );
    return vi.runAllTimersAsync().then(async () => ({ said: await done, tries, waits }));
  };
  const refused = (code: string, status: number) => new WaggleError(code, "no", { status });
  expect(await answers(refused("QUOTA_EXCEEDED", 429), "sent")).toEqual({ said: "QUOTA_EXCEEDED", tries: 1, waits: [] });
  expect(await answers(refused("QUEUE_FULL", 429), "sent")).toMatchObject({ said: "QUEUE_FULL", tries: 1 });
  expect(await answers(refused("SESSION_CLOSED", 410), "sent")).toMatchObject({ said: "SESSION_CLOSED", tries: 1 });
  expect(await answers(refused("RATE_LIMITED", 429), refused("UNREACHABLE", 0), refused("DRAINING", 503), "sent")).toEqual({
    said: "sent",
    tries: 4,
    waits: [true, true, true, false],
  });
  vi.useRealTimers();
});
