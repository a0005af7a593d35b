import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Draft, draftOf, empty, filled, formOf, type Input } from "../src/fold/form.ts";
import { hostile } from "./hostile.ts";

const ajv = () => new Ajv2020({ strict: false, validateFormats: false, allowUnionTypes: true, ownProperties: true, logger: false });

type Schema = Record<string, unknown>;

const limits = (low: string, high: string) =>
  fc.record({ [low]: fc.integer({ min: 0, max: 3 }), [high]: fc.integer({ min: 3, max: 9 }) }, { requiredKeys: [] });
const name = fc.constantFrom("a", "b", "a/b", "c~d", "constructor", "名");

/** Schemas of all that forms have, and of what they leave to JSON. */
const { schema } = fc.letrec<{ schema: Schema }>((tie) => ({
  schema: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    limits("minLength", "maxLength").map((x) => ({ type: "string", ...x })),
    fc.constantFrom({ type: "string", format: "date" }, { type: "boolean" }, {}, { type: "null" }, { not: {} }),
    fc.constantFrom({ type: "integer", minimum: -3, maximum: 8 }, { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 2.5 }),
    fc.constantFrom({ type: "number", multipleOf: 3 }, { type: "array" }, { type: "object" }, { type: ["string", "null"] }),
    fc.uniqueArray(fc.jsonValue({ maxDepth: 1 }), { minLength: 1, maxLength: 4 }).map((x) => ({ enum: x })),
    fc.constantFrom({ $ref: "#/$defs/leaf" }, { $ref: "#/$defs/loop" }, { $ref: "#/$defs/itself" }, { const: 7 }),
    fc.tuple(tie("schema"), limits("minItems", "maxItems")).map(([items, x]) => ({ type: "array", items, ...x })),
    fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).chain((x) => fc.constantFrom({ oneOf: x }, { anyOf: x })),
    fc
      .tuple(fc.dictionary(name, tie("schema"), { maxKeys: 4 }), fc.array(fc.boolean(), { maxLength: 4 }), fc.boolean())
      .map(([properties, must, open]) => ({
        type: "object",
        properties,
        required: Object.keys(properties).filter((_, i) => must[i]),
        ...(open ? {} : { additionalProperties: false }),
      })),
  ) as fc.Arbitrary<Schema>,
}));

const defs = {
  leaf: { type: "string", maxLength: 4 },
  loop: { type: "object", properties: { again: { $ref: "#/$defs/loop" } } },
  itself: { $ref: "#/$defs/itself" },
};

/** What somebody might type into an input. */
function typed(input: Input): fc.Arbitrary<Draft> {
  switch (input.kind) {
    case "flag":
      return fc.constantFrom("", "true", "false");
    case "choice":
      return fc.integer({ min: -1, max: input.values.length - 1 }).map((n) => (n < 0 ? "" : String(n)));
    case "number":
      return fc.oneof(fc.integer({ min: -5, max: 10 }).map(String), fc.constantFrom("", "x", "1.5", "1e3", "9007199254740993", " 2 "));
    case "text":
      return fc.oneof(fc.string({ maxLength: 10 }), fc.constant("2026-01-31"));
    case "json":
      return fc.oneof(fc.json({ maxDepth: 1 }), fc.constant("{"));
    case "list":
      return fc.array(typed(input.of), { maxLength: 4 });
    case "variant":
      return fc
        .nat(input.of.length - 1)
        .chain((n) => typed((input.of[n] as { input: Input }).input).map((value) => ({ pick: String(n), value })));
    case "object":
      return fc
        .tuple(...input.fields.map((f) => fc.option(typed(f.input), { nil: undefined })))
        .map((all) => Object.fromEntries(input.fields.map((f, i) => [f.name, all[i]]).filter(([, d]) => d !== undefined)) as Draft);
  }
}

/** Whether an input, or one in it, leaves its value to JSON. */
function leaves(input: Input): boolean {
  switch (input.kind) {
    case "json":
      return true;
    case "list":
      return leaves(input.of);
    case "variant":
      return input.of.some((v) => leaves(v.input));
    case "object":
      return input.fields.some((f) => leaves(f.input));
  }
  return false;
}

test("what a form accepts fits the schema, unless a part of it is left to JSON", () => {
  let forms = 0;
  let values = 0;
  fc.assert(
    fc.property(
      schema.chain((s) => {
        const whole = { ...s, $defs: defs };
        return fc.tuple(fc.constant(whole), typed(formOf(whole)));
      }),
      ([s, draft]) => {
        const form = formOf(s);
        const { value, wrong } = filled(form, draft);
        if (leaves(form)) return;
        forms++;
        if (wrong.length > 0) return;
        values++;
        const check = ajv();
        expect(check.validate(s, value), `${JSON.stringify(s)} ${JSON.stringify(value)} ${check.errorsText()}`).toBe(true);
        expect(filled(form, draftOf(form, value)).value).toEqual(value); // there and back
      },
    ),
    { numRuns: 500 },
  );
  expect(forms).toBeGreaterThan(100);
  expect(values).toBeGreaterThan(30);
});

test("any JSON is a form, and any values are read", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (s, v) => {
      const form = formOf(s);
      draftOf(form, v);
      expect(Array.isArray(filled(form, empty(form)).wrong)).toBe(true);
    }),
  );
});

function inputs(input: Input): number {
  if (input.kind === "list") return 1 + inputs(input.of);
  if (input.kind === "variant") return input.of.reduce((n, v) => n + inputs(v.input), 1);
  return input.kind === "object" ? input.fields.reduce((n, f) => n + inputs(f.input), 1) : 1;
}

test("hostile schemas make small forms", () => {
  const cases = hostile();
  for (const [what, s] of Object.entries(cases)) {
    const form = formOf(s);
    filled(form, empty(form));
    expect(inputs(form), what).toBeLessThanOrEqual(1000);
  }
  const own = formOf(cases["proto"]); // a validator passes over this name
  expect(JSON.stringify(filled(own, JSON.parse('{"__proto__":"x"}') as Draft).value)).toBe('{"__proto__":"x"}');
  const slow = formOf(cases["pattern"]);
  expect(filled(slow, { x: `${"a".repeat(50_000)}!` }).wrong).toEqual([]); // the server checks patterns
});

test("each fault has its place", () => {
  const form = formOf({
    type: "object",
    required: ["city", "days"],
    properties: {
      city: { type: "string", minLength: 2, maxLength: 5 },
      days: { type: "integer", minimum: 1, maximum: 3 },
      when: { type: "string", format: "date" },
      tags: { type: "array", items: { type: "number" } },
      unit: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
    },
  });
  const at = (d: Draft) => filled(form, d).wrong.map((w) => `${w.at} ${w.why}`);
  expect(at({})).toEqual(["/city missing", "/days missing"]);
  expect(at({ city: "x", days: "9" })).toEqual(["/city short", "/days high"]);
  expect(at({ city: "Bern", days: "1.5", when: "soon", tags: ["1", "x"] })).toEqual(["/days integer", "/when date", "/tags/1 number"]);
  expect(filled(form, { city: "Bern", days: "2", unit: "km" }).value).toEqual({ city: "Bern", days: 2, unit: "km" });
});
