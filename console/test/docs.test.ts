import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { pages } from "../src/fold/docs.ts";

test("the palette names pages that exist, each once", () => {
  const missing = pages.filter(([, file]) => !existsSync(new URL(`../../docs/${file}`, import.meta.url)));
  expect(missing).toEqual([]);
  for (const of of [0, 1] as const) expect(new Set(pages.map((p) => p[of])).size).toBe(pages.length);
});
