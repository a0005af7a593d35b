import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { eventTypes } from "../../sdk/typescript/client/src/generated/events.ts";

const folder = new URL("../src/fold/", import.meta.url);
const folds = readdirSync(folder).map((name) => new URL(name, folder));
const view = new URL("../../sdk/typescript/client/src/view.ts", import.meta.url);

/** Types that both pass over, by the reason. */
const both: Record<string, string[]> = {
  "it ends the page, which shows that the log is gone": ["session.deleted", "task.deleted"],
  "it says what no part of the page shows: the log has it": [
    ...["session.closed", "session.paused", "session.restored", "message.refused", "attempt.refused", "call.notified", "member.created"],
    ...["todos.updated", "artifact.persisted", "artifact.updated", "team.stopped", "team.paused", "team.resumed", "team.closing"],
  ],
  "it sums up what is folded": ["run.progressed", "pipeline.completed"],
  "another event that is folded follows": ["plan.started", "plan.invalid", "aggregate.started"],
  "inboxes have no page": ["inbox.created", "inbox.registered", "inbox.messaged"],
};

/** Types that one of them folds. */
const passed = {
  folds: { "it is a part of the conversation alone": ["notice", "plan.cancelled", "step.restarted"] } as Record<string, string[]>,
  view: {
    "it is in logs of tasks": [
      ...[
        "task.created",
        "task.queued",
        "task.assigned",
        "task.reported",
        "task.notified",
        "task.messaged",
        "task.released",
        "task.refused",
      ],
      ...["task.asked", "task.ask_expired", "task.finished", "child.created", "child.finished", "call.started", "call.finished"],
    ],
    "it is the team's own": [
      ...[
        "team.created",
        "team.member_started",
        "team.message_dropped",
        "team.sub_team_event",
        "team.closed",
        "board.created",
        "board.updated",
      ],
    ],
    "it is a part of the trace alone": [
      ...["session.created", "message.started", "usage.recorded", "input.requested", "job.failed", "job.suspended", "aggregate.completed"],
      ...["error", "member.closed"],
    ],
  } as Record<string, string[]>,
};

for (const [name, files] of [
  ["folds", folds],
  ["view", [view]],
] as const) {
  test(`each type of event is folded or passed over for a reason: ${name}`, () => {
    const text = files.map((file) => readFileSync(file, "utf8")).join("\n");
    const left = eventTypes.filter((type) => !text.includes(`"${type}"`));
    const reasons = [...Object.values(both).flat(), ...Object.values(passed[name]).flat()];
    expect(left.toSorted(), "fold a new type, or say here why it is passed over").toEqual(reasons.toSorted());
  });
}
