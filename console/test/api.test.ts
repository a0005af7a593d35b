import { expect, test, vi } from "vitest";

vi.stubGlobal("location", { pathname: "/", search: "" });
vi.stubGlobal("addEventListener", () => {});
const { apiOf, curlOf } = await import("../src/fold/api.ts");
const route = await import("../src/route.ts");

test.each([
  ["/sessions?state=failed&q=a b", "sessions?state=failed&q=a+b"],
  ["/sessions/a%2Fb?view=log", "logs/session/a%2Fb/events"],
  ["/questions", "questions"],
  ["/teams", "teams"],
  ["/teams/x", "teams/x"],
  ["/teams/x?view=log", "logs/team/x/events"],
  ["/swarm", "agents"],
  ["/swarm/providers", "services"],
  ["/swarm/tasks/t1", "tasks/t1"],
  ["/swarm/tools/p/t", undefined],
  ["/installation", "status"],
  ["/installation/audit?principal=ann", "audit?principal=ann"],
  ["/installation/versions?role=worker", "installation"],
  ["/compare", undefined],
  ["/", undefined],
])("the request of %s is %s", (address, path) => {
  const at = new URL(address, "http://x");
  expect(apiOf(route.parse(at.pathname, at.search))).toBe(path);
});

test("a command quotes what others have named, and has no token", () => {
  expect(curlOf("http://h", "sessions?q=it's", false)).toBe(`curl -fsS 'http://h/api/v1/sessions?q=it'\\''s'`);
  expect(curlOf("http://h", "me", true)).toBe(`curl -fsS -H "Authorization: Bearer $WAGGLE_TOKEN" 'http://h/api/v1/me'`);
});
