import type { ModelTrial } from "@waggle-dev/client";
import { expect, test } from "vitest";
import { Trials } from "../src/model/trials.ts";

const names = ["answer", "tool call", "parallel calls", "JSON answer"];
const result = (trial: number, more: Partial<ModelTrial> = {}): ModelTrial => ({
  ...{ model: "openai:x", trial, of: names.length, name: names[trial] ?? "", grade: "works", is: "fine", duration_ms: 1, ...more },
});

/** Trials that are made when the test says so. */
function held() {
  const asked: { n: number; signal: AbortSignal; answer: (r: ModelTrial) => void; fail: (e: unknown) => void }[] = [];
  const trials = new Trials((n, signal) => new Promise((answer, fail) => asked.push({ n, signal, answer, fail })));
  const numbers = () => asked.map((a) => a.n);
  return { trials, asked, numbers, settle: () => new Promise((go) => setImmediate(go)) };
}

test("the trials are made one after the other, and each result shows as it comes", async () => {
  const { trials, asked, numbers, settle } = held();
  const all = trials.start();
  void trials.start(); // a second click changes nothing
  for (let n = 0; n < 4; n++) {
    expect([trials.state.value, trials.results.value.length, numbers()]).toEqual(["running", n, [0, 1, 2, 3].slice(0, n + 1)]);
    asked[n]?.answer(result(n));
    await settle();
  }
  await all;
  expect([trials.state.value, trials.results.value.map((r) => r.name)]).toEqual(["done", names]);
  void trials.start();
  expect([trials.state.value, trials.results.value, numbers()]).toEqual(["running", [], [0, 1, 2, 3, 0]]);
});

test("no trial follows one that says that the model does not answer", async () => {
  const { trials, asked, numbers } = held();
  const all = trials.start();
  asked[0]?.answer(result(0, { grade: "missing", stopped: true }));
  await all;
  expect([trials.state.value, trials.results.value.length, numbers()]).toEqual(["done", 1, [0]]);
});

test("after an error the trials go on where they were, and none is repeated", async () => {
  const { trials, asked, numbers, settle } = held();
  const all = trials.start();
  asked[0]?.answer(result(0));
  await settle();
  const error = new Error("no worker");
  asked[1]?.fail(error);
  await all;
  expect([trials.state.value, trials.error.value, trials.results.value.length]).toEqual(["failed", error, 1]);
  void trials.resume();
  expect([trials.state.value, trials.error.value, numbers()]).toEqual(["running", undefined, [0, 1, 1]]);
});

test("a stop gives up the present trial, whose result does not count any more", async () => {
  const { trials, asked, numbers, settle } = held();
  void trials.start();
  asked[0]?.answer(result(0));
  await settle();
  trials.stop();
  expect([trials.state.value, asked[1]?.signal.aborted]).toEqual(["stopped", true]);
  void trials.start();
  asked[1]?.answer(result(1));
  await settle();
  expect([trials.state.value, trials.results.value, numbers()]).toEqual(["running", [], [0, 1, 0]]);
  asked[2]?.answer(result(0));
  await settle();
  expect(trials.results.value.length).toBe(1);
});
