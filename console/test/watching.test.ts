import type { Connection } from "@waggle-dev/client";
import { expect, test } from "vitest";
import { behind, watches } from "../src/fold/watching.ts";

const connection: Connection = {
  id: "c1",
  gateway: "g1",
  protocol: "orbit",
  tenant: "default",
  principal: "ada",
  since: "2026-01-02T03:04:05Z",
  queued_bytes: 100,
  lagging: true,
  watches: [
    { log: "session/s1", seq: 3, events_behind: 9, waiting_bytes: 50, reason: "queue_full", lagging_since: "2026-01-02T03:06:00Z" },
    { log: "session/S2", seq: 8, events_behind: 2, waiting_bytes: 0, reason: "loading", lagging_since: "2026-01-02T03:05:00Z" },
    { events_behind: 0, waiting_bytes: 0, missed: 7 },
  ],
};

test("a connection is as far behind as its viewers are", () => {
  expect(behind(connection)).toEqual({ events: 9, bytes: 150, missed: 7, lag: connection.watches[1] });
  expect(behind({ ...connection, queued_bytes: 0, watches: [] })).toEqual({ events: 0, bytes: 0, missed: 0, lag: undefined });
});

test("connections are found by who, how, where and what they watch", () => {
  for (const text of ["", "ADA", "orb", "g1", "c1", " session/s2 "]) expect(watches(connection, text), text).toBe(true);
  expect(watches(connection, "s3")).toBe(false);
  expect(watches({ ...connection, watches: [] }, "s1")).toBe(false);
});
