import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Draft, draftOf, empty, filled } from "../src/fold/draft.ts";
import { formOf, type Input } from "../src/fold/form.ts";
import { momentOf, zoneless } from "../src/fold/zone.ts";
import { hostile } from "./hostile.ts";

const formats = {
  date: (x: string) => /^\d{4}-\d\d-\d\d$/.test(x) && new Date(x).toISOString().startsWith(x),
  "date-time": (x: string) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(x),
};
const ajv = () => new Ajv2020({ strict: false, formats, allowUnionTypes: true, ownProperties: true, logger: false });

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
    fc.constantFrom(
      { type: "string", format: "date-time" },
      { type: "string", pattern: "^[ab]{1,3}$" },
      { type: "string", pattern: "a|b" },
    ),
    fc.constantFrom({ type: "integer", minimum: -3, maximum: 8 }, { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 2.5 }),
    fc.constantFrom({ type: "number", multipleOf: 3 }, { type: "array" }, { type: "object" }, { type: ["string", "null"] }),
    fc.uniqueArray(fc.jsonValue({ maxDepth: 1 }), { minLength: 1, maxLength: 4 }).map((x) => ({ enum: x })),
    fc.constantFrom({ $ref: "#/$defs/leaf" }, { $ref: "#/$defs/loop" }, { $ref: "#/$defs/itself" }, { const: 7 }),
    fc
      .tuple(tie("schema"), limits("minItems", "maxItems"), fc.boolean())
      .map(([items, x, uniqueItems]) => ({ type: "array", items, uniqueItems, ...x })),
    fc
      .tuple(fc.uniqueArray(fc.jsonValue({ maxDepth: 0 }), { minLength: 1, maxLength: 4 }), fc.constantFrom("oneOf", "anyOf"))
      .map(([all, word]) => ({ [word]: all.map((v) => ({ const: v, title: `the ${JSON.stringify(v)}` })) })),
    fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).chain((x) => fc.constantFrom({ oneOf: x }, { anyOf: x })),
    fc
      .tuple(
        fc.dictionary(name, fc.tuple(tie("schema"), fc.option(fc.jsonValue({ maxDepth: 0 }), { nil: undefined })), { maxKeys: 4 }),
        fc.array(fc.boolean(), { maxLength: 4 }),
        fc.boolean(),
      )
      .map(
        ([all, must, open]) =>
          [Object.fromEntries(Object.entries(all).map(([n, [s, usual]]) => [n, given(s, usual)])), must, open] as const,
      )
      .map(([properties, must, open]) => ({
        type: "object",
        properties,
        required: Object.keys(properties).filter((_, i) => must[i]),
        ...(open ? {} : { additionalProperties: false }),
      })),
  ) as fc.Arbitrary<Schema>,
}));

/** A schema with a default, which may not fit it. */
const given = (s: Schema, usual: unknown): Schema => (usual === undefined ? s : { ...s, default: usual });

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
      return fc.oneof(fc.string({ maxLength: 10 }), fc.constantFrom("2026-01-31", "2026-02-30", "2026-01-31T14:00:00+02:00", "ab", "a"));
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

/** Whether a form has an input at the place. */
function has(input: Input, draft: Draft | undefined, at: readonly string[]): boolean {
  const [first, ...rest] = at;
  if (first === undefined) return true;
  if (input.kind === "variant") {
    const { pick, value } = draft as { pick: string; value: Draft };
    return has((input.of[Number(pick)] as { input: Input }).input, value, at);
  }
  if (input.kind === "list") return has(input.of, (draft as readonly Draft[])[Number(first)], rest);
  const field = input.kind === "object" ? input.fields.find((f) => f.name === first) : undefined;
  return field !== undefined && has(field.input, (draft as Record<string, Draft> | undefined)?.[first], rest);
}

const places = (at: string) =>
  at
    .split("/")
    .slice(1)
    .map((x) => x.replaceAll("~1", "/").replaceAll("~0", "~"));

test("what a form accepts fits the schema, unless a part of it is left to JSON, and what it does not has a place in it", () => {
  let forms = 0;
  let values = 0;
  fc.assert(
    fc.property(
      schema.chain((s) => {
        const whole = { ...s, $defs: defs };
        const form = formOf(whole);
        return fc.tuple(fc.constant(whole), fc.oneof(typed(form), fc.constant(empty(form))));
      }),
      ([s, draft]) => {
        const form = formOf(s);
        const { value, wrong } = filled(form, draft);
        for (const w of wrong) expect(has(form, draft, places(w.at)), `${JSON.stringify(s)} ${w.at} ${w.why}`).toBe(true);
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
  expect(filled(slow, { x: `${"a".repeat(50_000)}!` }).wrong).toEqual([]); // the server checks such patterns
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

test("a schema that names its values is a choice by these names, and one with a default begins with it", () => {
  const form = formOf({
    type: "object",
    properties: {
      speed: { type: "integer", oneOf: [{ const: 1, title: "Slow" }, { const: 2 }], default: 2 },
      city: { type: "string", default: "Bern" },
      days: { type: "integer", maximum: 3, default: 9 },
      place: { type: "object", properties: { zip: { type: "string", default: "3000" } }, default: { zip: "8000" } },
    },
  });
  expect(form).toMatchObject({ fields: [{ input: { kind: "choice", values: [1, 2], titles: ["Slow", ""] } }, {}, {}, {}] });
  expect(filled(form, empty(form)).value).toEqual({ speed: 2, city: "Bern", place: { zip: "8000" } }); // 9 days are too many
});

test("schemas of which one has to fit are a choice if they are apart, and any of which may fit always are", () => {
  const pay = (...members: string[]) => ({
    type: "object",
    properties: Object.fromEntries(members.map((m) => [m, { type: "string" }])),
    required: members,
  });
  expect(formOf({ oneOf: [pay("card"), pay("iban")] }).kind).toBe("variant");
  expect(formOf({ oneOf: [pay("card"), pay("card", "pin")] }).kind).toBe("json"); // a card with a pin fits both
  expect(formOf({ anyOf: [pay("card"), pay("card", "pin")] })).toMatchObject({ of: [{ title: "object 1" }, { title: "object 2" }] });
  expect(formOf({ oneOf: [{ type: "integer" }, { type: "number" }] }).kind).toBe("json");
});

test("patterns that a browser tests in few steps are tested, others are left to the server", () => {
  for (const pattern of ["^[A-Z]{3}-\\d{2}$", "^[^@]+@[^@]+\\.[^@]+$", "^(EUR|USD|CHF)$", "^\\d{4}(-\\d\\d)?$", "^(?:[a-f]{2}){3}$"])
    expect(filled(formOf({ type: "string", pattern }), "?").wrong, pattern).toEqual([{ at: "", why: "pattern" }]);
  for (const pattern of ["(a+)+$", "(a|a)*$", "^(a?){30}a{30}$", "(?=x)y", "^(a)\\1$", "(a|b|c)".repeat(20), "a*a*a*a*a*a*$", "[", "(x))"])
    expect(filled(formOf({ type: "string", pattern }), "?".repeat(100)).wrong, pattern).toEqual([]);
});

test("a time is typed without its zone, and sent with it", () => {
  expect(momentOf("2026-01-31T14:00", true)).toBe("2026-01-31T14:00:00Z");
  expect(zoneless("2026-01-31T14:00:00+02:00", true)).toBe("2026-01-31T12:00:00");
  expect(momentOf("", true)).toBe("");
  expect(zoneless("soon", false)).toBe("");
  for (const utc of [true, false]) expect(zoneless(momentOf("2026-07-31T14:00:05", utc), utc)).toBe("2026-07-31T14:00:05");
  const form = formOf({ type: "string", format: "date-time" });
  expect(filled(form, "2026-02-30T14:00:00Z").wrong).toEqual([{ at: "", why: "moment" }]);
  expect(filled(form, "2026-02-28T14:00:00.5-03:00").value).toBe("2026-02-28T14:00:00.5-03:00");
});
