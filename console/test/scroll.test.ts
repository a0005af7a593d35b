import { expect, test } from "vitest";
import { stays } from "../src/parts/scroll.tsx";

test("a column that grows before it is told of its own scrolling goes on following, until its reader moves", () => {
  const box = { scrollTop: 900, clientHeight: 600, scrollHeight: 1500 };
  expect(stays(box, true, 900), "at the end").toBe(true);
  expect(stays({ ...box, scrollHeight: 1986 }, true, 900), "grown since").toBe(true);
  expect(stays({ ...box, scrollHeight: 1986, scrollTop: 860 }, true, 900), "moved up").toBe(false);
  expect(stays({ ...box, scrollHeight: 1986 }, false, 900), "was not at the end").toBe(false);
  expect(stays({ ...box, scrollTop: 1390, scrollHeight: 1986 }, false, 900), "back at the end").toBe(true);
  expect(stays({ ...box, scrollTop: 400, scrollHeight: 1000 }, true, 900), "shrunk").toBe(true);
});
