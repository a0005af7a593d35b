import { expect, test } from "vitest";
import { empty, filled } from "../src/fold/draft.ts";
import { formOf } from "../src/fold/form.ts";
import { hostile } from "./hostile.ts";

test.each(Object.entries(hostile()))("the hostile schema %s makes its form at once", (_, schema) => {
  const began = performance.now();
  const form = formOf(schema);
  filled(form, empty(form));
  expect(performance.now() - began).toBeLessThan(2000);
});
