import { beforeAll, expect, test, vi } from "vitest";
import { gateway } from "./gateway.ts";

// What a page does when the server refuses an answer, against a server that still lists the question: its index follows later.

vi.mock("../src/model/live.ts", () => ({ onChange: () => () => {}, follow: (read: () => Promise<void>) => [() => {}, void read()][0] }));

const ids = ["first", "with-changes", "no", "said", "hidden", "nobody", "late", "gone", "unknown", "stopped", "wrong", "role"];
const answers: Record<string, [status: number, problem: Record<string, string>]> = {
  first: [409, { title: "INPUT_ANSWERED", decision: "approve", answered_by: "bob" }],
  "with-changes": [409, { title: "INPUT_ANSWERED", decision: "modify", answered_by: "bob" }],
  no: [409, { title: "INPUT_ANSWERED", decision: "reject", answered_by: "bob" }],
  said: [409, { title: "INPUT_ANSWERED", decision: "answer", answered_by: "bob" }],
  hidden: [409, { title: "INPUT_ANSWERED", decision: "reject", answered_by: "\u202ebob" }],
  nobody: [409, { title: "INPUT_ANSWERED" }],
  late: [408, { title: "INPUT_EXPIRED", detail: "Too late." }],
  gone: [410, { title: "SESSION_DELETED", detail: "Deleted." }],
  unknown: [422, { title: "INPUT_NOT_FOUND", detail: "No such question." }],
  stopped: [409, { title: "TASK_FINISHED", detail: "It has ended." }],
  wrong: [422, { title: "PLAN_INVALID", detail: "A circle." }],
  role: [403, { title: "FORBIDDEN", detail: "Not you." }],
};

gateway((q, a) => {
  const id = decodeURIComponent(q.url?.split("/")[4] ?? "");
  const [status, problem] = answers[id] ?? [200, undefined];
  a.writeHead(status, { "Content-Type": problem ? "application/problem+json" : "application/json" });
  const questions = ids.map((id, n) => ({ id, asked_at: new Date(n).toISOString() }));
  a.end(JSON.stringify(problem ? { detail: "Answered.", ...problem, status } : q.method === "POST" ? {} : { questions }));
});
let act: typeof import("../src/model/act.ts");
let lists: typeof import("../src/model/lists.ts");
let app: typeof import("../src/app.ts");

beforeAll(async () => {
  act = await import("../src/model/act.ts");
  lists = await import("../src/model/lists.ts");
  app = await import("../src/app.ts");
});

test("a question that takes no answer any more leaves the lists, and the page says why", async () => {
  const list = lists.questionList();
  await list.read();
  const shown = () => list.rows.value?.map((q) => q.id);
  expect(shown()).toEqual(ids);
  for (const [id, told] of [
    ["first", "bob approved this first"],
    ["with-changes", "bob approved this first, with changes"],
    ["no", "bob rejected this first"],
    ["said", "bob answered this first"],
    ["hidden", "⟨U+202E⟩bob rejected this first"],
    ["nobody", "Somebody else answered this first"],
    ["late", "Too late."],
    ["gone", "Deleted."],
    ["unknown", "No such question."],
    ["stopped", "It has ended."],
  ] as const) {
    await expect(act.answer(id, { decision: "reject" })).rejects.toThrow();
    expect(app.notice.value).toBe(told);
    expect(shown()).not.toContain(id);
  }
  await list.read(); // the server's list has them still
  expect(shown()).toEqual(["wrong", "role"]);
  app.notice.value = "";
  for (const id of ["wrong", "role"]) await expect(act.answer(id, { decision: "approve" })).rejects.toThrow();
  expect([shown(), app.notice.value]).toEqual([["wrong", "role"], ""]);
  list.close();
});
