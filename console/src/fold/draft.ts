import { canonical } from "./canonical.ts";
import type { Field, Input } from "./form.ts";
import { tester } from "./pattern.ts";

// Makes JSON of what somebody has typed into a form, and back. The server checks once more what it gets.

/** Entries of a list that a form shows. */
export const mostEntries = 200;

/** An object of JSON. */
export type Schema = Record<string, unknown>;

export function isObject(v: unknown): v is Schema {
  return typeof v === "object" && v !== null && !Array.isArray(v);
}

/** What has been typed into an input: a text, or what is in the inputs below it. */
export type Draft = string | readonly Draft[] | { readonly [name: string]: Draft };

/** What is wrong with an input: the JSON pointer of its place, and why. */
export interface Wrong {
  at: string;
  why:
    | "missing"
    | "number"
    | "integer"
    | "big"
    | "low"
    | "above"
    | "high"
    | "below"
    | "short"
    | "long"
    | "pattern"
    | "date"
    | "moment"
    | "few"
    | "many"
    | "twice"
    | "json"
    | "object";
  limit?: number;
}

const json: Input = { kind: "json" };

/** Whether an input has others in it, or only one value. */
const holds = (input: Input) =>
  ["list", "object", "variant"].includes(input.kind) || (input.kind === "choice" && input.values.length === 1);

/** What is in an input before somebody has typed: the values that the schema gives to absent members. */
export function empty(input: Input): Draft {
  switch (input.kind) {
    case "list":
      return Array.from({ length: input.least }, () => empty(input.of));
    case "object":
      return Object.fromEntries(
        input.fields.flatMap((f) => {
          const draft = f.given ?? (f.required && holds(f.input) ? empty(f.input) : undefined);
          return draft === undefined ? [] : [[f.name, draft] as const];
        }),
      );
    case "variant":
      return { pick: "0", value: empty(input.of[0]?.input ?? json) };
    case "choice":
      return input.values.length === 1 ? "0" : "";
  }
  return "";
}

/** The value of what has been typed, and what is wrong with it. An input that is empty and need not be filled has no value. */
export function filled(input: Input, draft: Draft | undefined, required = true): { value?: unknown; wrong: Wrong[] } {
  const wrong: Wrong[] = [];
  const value = read(input, draft, required, "", wrong);
  return wrong.length > 0 || value === undefined ? { wrong } : { value, wrong };
}

function read(input: Input, draft: Draft | undefined, required: boolean, at: string, wrong: Wrong[]): unknown {
  const fail = (why: Wrong["why"], limit?: number) => void wrong.push(limit === undefined ? { at, why } : { at, why, limit });
  if (draft === undefined) return required ? fail("missing") : undefined;
  switch (input.kind) {
    case "list": {
      const all = Array.isArray(draft) ? (draft as readonly Draft[]) : [];
      if (all.length < input.least) fail("few", input.least);
      if (all.length > input.most) fail("many", input.most);
      const values = all.map((d, i) => read(input.of, d, true, `${at}/${i}`, wrong));
      if (input.unique && new Set(values.map((v) => canonical(v ?? null))).size < values.length) fail("twice");
      return values;
    }
    case "object":
      return object(input.fields, isObject(draft) ? (draft as Record<string, Draft>) : {}, at, wrong);
    case "variant": {
      const d = draft as { pick: string; value: Draft };
      const chosen = input.of[Number(d.pick)];
      return chosen ? read(chosen.input, d.value, true, at, wrong) : fail("missing");
    }
  }
  const text = String(draft);
  if (text === "" && (!required || !(input.kind === "text" && input.format === ""))) return required ? fail("missing") : undefined;
  switch (input.kind) {
    case "text":
      return string(input, text, fail);
    case "number":
      return numeric(input, text, fail);
    case "flag":
      return text === "true";
    case "choice":
      return input.values[Number(text)];
    case "json":
      try {
        return JSON.parse(text) as unknown;
      } catch {
        return fail("json");
      }
  }
}

type Fail = (why: Wrong["why"], limit?: number) => void;

function object(fields: readonly Field[], drafts: Record<string, Draft>, at: string, wrong: Wrong[]): unknown {
  const all: [string, unknown][] = [];
  for (const f of fields) {
    const draft = Object.hasOwn(drafts, f.name) ? drafts[f.name] : undefined;
    const value = read(f.input, draft, f.required, `${at}/${f.name.replaceAll("~", "~0").replaceAll("/", "~1")}`, wrong);
    if (value !== undefined) all.push([f.name, value]);
  }
  return Object.fromEntries(all);
}

function string(input: Extract<Input, { kind: "text" }>, text: string, fail: Fail): unknown {
  const length = [...text].length;
  if (length < input.least) return fail("short", input.least);
  if (length > input.most) return fail("long", input.most);
  if (input.format === "date" && !isDate(text)) return fail("date");
  if (input.format === "date-time" && !isMoment(text)) return fail("moment");
  if (tester(input.pattern, text)?.test(text) === false) return fail("pattern");
  return text;
}

const isDate = (text: string) => /^\d{4}-\d\d-\d\d$/.test(text) && new Date(`${text}T00:00:00Z`).getUTCDate() === Number(text.slice(8));

/** Whether a text is a time with its zone (RFC 3339). */
const isMoment = (text: string) =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i.test(text) && isDate(text.slice(0, 10)) && !Number.isNaN(Date.parse(text));

function numeric(input: Extract<Input, { kind: "number" }>, text: string, fail: Fail): unknown {
  const n = Number(text.trim());
  if (text.trim() === "" || !Number.isFinite(n)) return fail("number");
  if (input.integer && !Number.isInteger(n)) return fail("integer");
  if (Number.isInteger(n) && !Number.isSafeInteger(n)) return fail("big");
  if (n < input.least) return fail("low", input.least);
  if (n <= input.above) return fail("above", input.above);
  if (n > input.most) return fail("high", input.most);
  if (n >= input.below) return fail("below", input.below);
  return n;
}

/** What somebody would have to type to get the value; undefined: the form cannot hold it. */
export function draftOf(input: Input, value: unknown): Draft | undefined {
  switch (input.kind) {
    case "json":
      return JSON.stringify(value, null, 2);
    case "text":
      if (typeof value !== "string") return undefined;
      return input.format === "" || isDate(value) || isMoment(value) ? value : undefined;
    case "number":
      return typeof value === "number" ? String(value) : undefined;
    case "flag":
      return typeof value === "boolean" ? String(value) : undefined;
    case "choice": {
      const form = canonical(value);
      const at = input.values.findIndex((v) => canonical(v) === form);
      return at < 0 ? undefined : String(at);
    }
    case "list": {
      if (!Array.isArray(value) || value.length > mostEntries) return undefined;
      const all = value.map((v) => draftOf(input.of, v));
      return all.every((d) => d !== undefined) ? all : undefined;
    }
    case "object": {
      if (!isObject(value) || Object.keys(value).some((k) => !input.fields.some((f) => f.name === k))) return undefined;
      const all = input.fields.filter((f) => Object.hasOwn(value, f.name)).map((f) => [f.name, draftOf(f.input, value[f.name])] as const);
      return all.every(([, d]) => d !== undefined) ? (Object.fromEntries(all) as Draft) : undefined;
    }
    case "variant": {
      for (const [i, v] of input.of.entries()) {
        const inside = draftOf(v.input, value);
        if (inside !== undefined && filled(v.input, inside).wrong.length === 0) return { pick: String(i), value: inside };
      }
      return undefined;
    }
  }
}
