import { expect, test } from "vitest";
import { en } from "../src/words.ts";
import { zh } from "../src/words.zh.ts";

test("a text has the same arguments in every language", () => {
  const places = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(String).sort();
  for (const [key, text] of Object.entries(en)) expect(places(zh[key as keyof typeof zh]), key).toEqual(places(text));
});
