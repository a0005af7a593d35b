import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";

let route: typeof import("../src/route.ts");
beforeAll(async () => {
  Object.assign(globalThis, { location: { pathname: "/", search: "" }, addEventListener: () => {} });
  route = await import("../src/route.ts");
});

test("an address that was written is read as the same route", () => {
  const text = fc.string({ maxLength: 30 });
  const segment = fc.string({ minLength: 1, maxLength: 30 }).filter((id) => !/^\.+$/.test(id));
  const ref = fc.record(
    { session: fc.string({ minLength: 1, maxLength: 20 }), run: fc.string({ maxLength: 20 }), at: fc.integer({ min: 1 }) },
    { requiredKeys: ["session", "run"] },
  );
  const some = fc.oneof(
    fc.constantFrom("playground" as const, "questions" as const).map((room) => ({ room })),
    fc.record(
      {
        room: fc.constant("sessions" as const),
        id: fc.string({ minLength: 1, maxLength: 30 }).filter((id) => !/^\.+$/.test(id)),
        view: fc.constantFrom("talk" as const, "trace" as const, "log" as const),
        at: fc.integer({ min: 1 }),
        pick: fc.integer({ min: 1 }),
        q: text,
        state: text,
      },
      { requiredKeys: ["room", "view", "q", "state"] },
    ),
    fc.record({ room: fc.constant("compare" as const), a: fc.option(ref, { nil: undefined }), b: fc.option(ref, { nil: undefined }) }),
    fc
      .constantFrom("health" as const, "queues" as const, "dead" as const, "quotas" as const, "config" as const)
      .map((tab) => ({ room: "installation" as const, tab, principal: "", action: "", entity: "" })),
    fc.record({
      room: fc.constant("installation" as const),
      tab: fc.constant("audit" as const),
      principal: text,
      action: text,
      entity: text,
    }),
    fc.record(
      {
        room: fc.constant("installation" as const),
        tab: fc.constant("connections" as const),
        principal: fc.constant(""),
        action: fc.constant(""),
        entity: text,
        lagging: fc.constant(true as const),
      },
      { requiredKeys: ["room", "tab", "principal", "action", "entity"] },
    ),
    fc.record({ room: fc.constant("swarm" as const), tab: fc.constantFrom(...route.swarmTabs) }),
    fc.record({
      room: fc.constant("swarm" as const),
      tab: fc.constant("tools" as const),
      tool: fc.record({ provider: segment, name: segment, kind: fc.constantFrom("mcp", "service"), call: fc.string() }),
    }),
    fc.record(
      { room: fc.constant("task" as const), id: segment, view: fc.constantFrom(...route.taskViews), at: fc.integer({ min: 1 }) },
      { requiredKeys: ["room", "id", "view"] },
    ),
    fc.record(
      {
        room: fc.constant("teams" as const),
        id: fc.string({ minLength: 1, maxLength: 30 }).filter((id) => !/^\.+$/.test(id)),
        view: fc.constantFrom("tree" as const, "messages" as const, "board" as const, "log" as const),
        member: fc.string({ minLength: 1, maxLength: 30 }),
        at: fc.integer({ min: 1 }),
      },
      { requiredKeys: ["room", "view"] },
    ),
  );
  fc.assert(
    fc.property(some, (r) => {
      const u = new URL(route.format(r), "http://waggle");
      expect(route.parse(u.pathname, u.search)).toEqual(r);
    }),
  );
});

test("no address throws, and what makes no sense is left out", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (path, query) => {
      expect(route.parse(`/${path}`, query).room).toBeTypeOf("string");
    }),
  );
  expect(route.parse("/sessions/s1", "?view=no&at=-4")).toEqual({ room: "sessions", id: "s1", view: "talk", q: "", state: "" });
  expect(route.parse("/other", "").room).toBe("nowhere");
  expect(route.parse("/sessions/a/b", "").room).toBe("nowhere");
  expect(route.parse("/swarm/a", "").room).toBe("nowhere");
  expect(route.parse("/installation", "")).toEqual(route.room("installation"));
  expect(route.parse("/installation/queues", "?action=x")).toMatchObject({ tab: "queues", action: "" });
  expect(route.parse("/installation/other", "").room).toBe("nowhere");
  const part = route.parse("/installation/versions", "?role=worker&instance=i+1");
  expect(part).toMatchObject({ tab: "versions", role: "worker", instance: "i 1" });
  expect(route.format(part)).toBe("/installation/versions?role=worker&instance=i+1");
  expect(route.parse("/installation/queues", "?role=worker")).toEqual(route.parse("/installation/queues", ""));
});
