import { expect, test } from "vitest";
import type { Part } from "../src/log/protocol.ts";
import { emptyState } from "../src/log/states.ts";
import { type Patch, Views } from "../src/log/views.ts";
import { large } from "./teamlog.ts";

test("a team of 500 members is laid out within 50 ms", () => {
  const state = emptyState("team");
  for (const e of large(500, 1000)) state.take(e);
  for (const part of ["tree", "messages", "board"] satisfies Part[]) {
    const times: number[] = [];
    for (let i = 0; i < 7; i++) {
      const began = process.cpuUsage();
      const patch: Patch = { do: "patch", seq: 0 };
      new Views(part, "").put(patch, state, false, false);
      const { user, system } = process.cpuUsage(began);
      times.push((user + system) / 1000);
      expect(patch.members?.length).toBe(500);
    }
    const best = Math.min(...times);
    console.log(`a team of 500 members: ${best.toFixed(1)} ms of the processor for ${part}`);
    expect(best).toBeLessThan(50);
  }
});
