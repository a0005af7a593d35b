import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Pulse } from "../src/log/pulse.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("many changes are one beat, beats are at most thirty a second, and none comes after the stop", () => {
  const beats: number[] = [];
  const began = performance.now();
  const pulse = new Pulse(() => beats.push(performance.now() - began));
  vi.advanceTimersByTime(1000);
  for (let i = 0; i < 1000; i++) {
    pulse.soon();
    pulse.soon();
    vi.advanceTimersByTime(1);
  }
  expect(beats.length).toBeGreaterThan(25);
  expect(beats.length).toBeLessThanOrEqual(31);
  for (const [i, at] of beats.entries()) if (i > 0) expect(at - (beats[i - 1] as number)).toBeGreaterThanOrEqual(33);
  const before = beats.length;
  pulse.soon();
  pulse.stop();
  pulse.soon();
  vi.runAllTimers();
  expect(beats.length).toBe(before);
});

test("what changes during a beat has a beat of its own", () => {
  let beats = 0;
  const pulse = new Pulse(() => {
    if (++beats < 3) pulse.soon();
  });
  pulse.soon();
  vi.runAllTimers();
  expect(beats).toBe(3);
});
