// Makes a form of a JSON Schema (2020-12), and JSON of what somebody has typed into it. Schemas come from others: a form has few
// inputs and is not deep, references are followed a few times, and what a form cannot hold is a field of JSON.

/** Inputs of one form, and how deep they are. */
const mostInputs = 300;
const deepest = 5;
/** References that are followed one after the other. */
const mostRefs = 8;
/** Values of a choice. */
const mostValues = 200;
/** Entries of a list that a form shows. */
const mostEntries = 200;

/** A place for one value. */
export type Input =
  | { kind: "text"; least: number; most: number; pattern: string; date: boolean }
  | { kind: "number"; integer: boolean; least: number; most: number; above: number; below: number }
  | { kind: "flag" }
  | { kind: "choice"; values: readonly unknown[] }
  | { kind: "list"; of: Input; least: number; most: number }
  | { kind: "object"; fields: readonly Field[] }
  | { kind: "variant"; of: readonly { title: string; input: Input }[] }
  | { kind: "json" };

/** A member of an object. */
export interface Field {
  name: string;
  title: string;
  about: string;
  required: boolean;
  /** What the schema gives as the value of an absent member. */
  usual: string;
  input: Input;
}

/** What has been typed into an input: a text, or what is in the inputs below it. */
export type Draft = string | readonly Draft[] | { readonly [name: string]: Draft };

/** What is wrong with an input: the JSON pointer of its place, and why. */
export interface Wrong {
  at: string;
  why: "missing" | "number" | "integer" | "low" | "high" | "short" | "long" | "few" | "many" | "date" | "json" | "object" | "big";
  limit?: number;
}

type Schema = Record<string, unknown>;

const json: Input = { kind: "json" };

/** Says nothing about which values fit. */
const annotations = ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema", "$id"];
const notes = new Set([...annotations, "$defs", "definitions", "format", "contentMediaType", "contentEncoding"]);

/** The form of the arguments of a tool. */
export function formOf(schema: unknown): Input {
  return new Maker(schema).input(schema, 0);
}

class Maker {
  private left = mostInputs;

  constructor(private readonly root: unknown) {}

  input(given: unknown, depth: number): Input {
    if (this.left-- <= 0 || depth > deepest) return json;
    const s = this.resolved(given);
    if (!s) return json;
    const says = (...words: string[]) => Object.keys(s).every((k) => notes.has(k) || words.includes(k));
    if (Array.isArray(s["enum"])) return says("enum", "type") ? choice(s["enum"], s["type"]) : json;
    if ("const" in s) return says("const", "type") ? choice([s["const"]], s["type"]) : json;
    const several = s["oneOf"] ?? s["anyOf"];
    if (Array.isArray(several)) return says("oneOf" in s ? "oneOf" : "anyOf") ? this.variant(several, depth) : json;
    switch (s["type"]) {
      case "string":
        return says("type", "minLength", "maxLength", "pattern") ? text(s) : json;
      case "number":
      case "integer":
        return says("type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") ? number(s) : json;
      case "boolean":
        return says("type") ? { kind: "flag" } : json;
      case "array":
        return says("type", "items", "minItems", "maxItems") && isObject(s["items"]) ? this.list(s, depth) : json;
      case "object":
        return says("type", "properties", "required", "additionalProperties") ? this.object(s, depth) : json;
    }
    return json;
  }

  /** A schema with its reference replaced; undefined: this is not a schema, or it refers to itself. */
  private resolved(given: unknown): Schema | undefined {
    let s = given;
    for (let n = 0; n < mostRefs; n++) {
      if (!isObject(s)) return undefined;
      if (!("$ref" in s)) return s;
      const about = Object.entries(s).filter(([k]) => k !== "$ref");
      if (about.some(([k]) => !notes.has(k))) return undefined;
      const target = this.at(s["$ref"]);
      s = isObject(target) ? { ...target, ...Object.fromEntries(about) } : undefined;
    }
    return undefined;
  }

  private at(ref: unknown): unknown {
    if (typeof ref !== "string" || !ref.startsWith("#")) return undefined;
    let place: unknown = this.root;
    for (const part of ref.slice(1).split("/").slice(1)) {
      const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
      place = isObject(place) && Object.hasOwn(place, name) ? place[name] : undefined;
    }
    return place;
  }

  private variant(all: readonly unknown[], depth: number): Input {
    const kinds = all.slice(0, mostValues).map((x) => this.resolved(x));
    if (all.length === 0 || all.length > 20 || kinds.some((k) => k === undefined)) return json;
    const of = kinds.map((s, i) => ({ title: String(s?.["title"] ?? s?.["type"] ?? i + 1), input: this.input(s, depth + 1) }));
    return of.some((v) => v.input.kind === "json") || !apart(kinds as Schema[]) ? json : { kind: "variant", of };
  }

  private list(s: Schema, depth: number): Input {
    const [least, most] = [limit(s["minItems"], 0), limit(s["maxItems"], Number.POSITIVE_INFINITY)];
    const of = this.input(s["items"], depth + 1);
    return least > mostEntries || of.kind === "json" ? json : { kind: "list", of, least, most };
  }

  private object(s: Schema, depth: number): Input {
    const members = s["properties"] ?? {};
    if (!isObject(members)) return json;
    const required = Array.isArray(s["required"]) ? s["required"] : [];
    const names = Object.keys(members);
    if (names.length > this.left) return json;
    if (required.some((r) => !names.includes(r as string)) || (names.length === 0 && s["additionalProperties"] !== false && depth > 0))
      return json;
    const fields = names.map((name): Field => {
      const of = this.resolved(members[name]);
      const usual = of && "default" in of ? (JSON.stringify(of["default"]) ?? "") : "";
      return {
        name,
        title: typeof of?.["title"] === "string" ? of["title"] : name,
        about: typeof of?.["description"] === "string" ? of["description"] : "",
        required: required.includes(name),
        usual: usual.length > 80 ? "" : usual,
        input: this.member(of ?? members[name], required.includes(name), depth + 1),
      };
    });
    return { kind: "object", fields };
  }

  /** The input of a member. One that may be null or absent is absent when it is empty. */
  private member(s: unknown, required: boolean, depth: number): Input {
    if (required || !isObject(s)) return this.input(s, depth);
    const several = s["anyOf"] ?? s["oneOf"];
    const rest = Array.isArray(several) && several.length === 2 ? several.filter((x) => !(isObject(x) && x["type"] === "null")) : [];
    const alone = "anyOf" in s || (isObject(rest[0]) && typeof rest[0]["type"] === "string");
    if (rest.length === 1 && alone && Object.keys(s).every((k) => notes.has(k) || k === "anyOf" || k === "oneOf"))
      return this.input(rest[0], depth);
    const type = s["type"];
    if (Array.isArray(type) && type.length === 2 && type.includes("null"))
      return this.input({ ...s, type: type.find((x) => x !== "null") }, depth);
    return this.input(s, depth);
  }
}

/** Whether a value can fit only one of the schemas: they have types of their own, or members with constants of their own. */
function apart(all: readonly Schema[]): boolean {
  const types = all.map((s) => (s["type"] === "integer" ? "number" : s["type"]));
  if (types.every((x) => typeof x === "string") && new Set(types).size === types.length) return true;
  const first = all[0]?.["properties"];
  return Object.keys(isObject(first) ? first : {}).some((name) => {
    const marks = all.map((s) => {
      const m = isObject(s["properties"]) ? s["properties"][name] : undefined;
      return isObject(m) && "const" in m && Array.isArray(s["required"]) && s["required"].includes(name)
        ? JSON.stringify(m["const"])
        : undefined;
    });
    return marks.every((m) => m !== undefined) && new Set(marks).size === marks.length;
  });
}

function choice(values: readonly unknown[], type: unknown): Input {
  const fitting = values.filter((v) => type === undefined || typeOf(v, type));
  if (fitting.length === 0 || fitting.length > mostValues) return json;
  return new Set(fitting.map((v) => JSON.stringify(v))).size === fitting.length ? { kind: "choice", values: fitting } : json;
}

function typeOf(v: unknown, type: unknown): boolean {
  if (Array.isArray(type)) return type.some((one) => typeOf(v, one));
  if (type === "integer") return Number.isInteger(v);
  if (type === "null") return v === null;
  if (type === "array") return Array.isArray(v);
  return type === "object" ? isObject(v) : typeof v === type;
}

function text(s: Schema): Input {
  const { pattern, format } = s;
  return {
    kind: "text",
    least: limit(s["minLength"], 0),
    most: limit(s["maxLength"], Number.POSITIVE_INFINITY),
    pattern: typeof pattern === "string" ? pattern : "",
    date: format === "date",
  };
}

function number(s: Schema): Input {
  const of = (name: string, otherwise: number) => (typeof s[name] === "number" ? s[name] : otherwise);
  const { NEGATIVE_INFINITY: lowest, POSITIVE_INFINITY: highest } = Number;
  return {
    kind: "number",
    integer: s["type"] === "integer",
    least: of("minimum", lowest),
    most: of("maximum", highest),
    above: of("exclusiveMinimum", lowest),
    below: of("exclusiveMaximum", highest),
  };
}

const limit = (v: unknown, otherwise: number) => (typeof v === "number" && v >= 0 ? v : otherwise);

function isObject(v: unknown): v is Schema {
  return typeof v === "object" && v !== null && !Array.isArray(v);
}

/** Whether an input has others in it, or only one value. */
const holds = (input: Input) =>
  ["list", "object", "variant"].includes(input.kind) || (input.kind === "choice" && input.values.length === 1);

/** What is in an input before somebody has typed. */
export function empty(input: Input): Draft {
  switch (input.kind) {
    case "list":
      return Array.from({ length: input.least }, () => empty(input.of));
    case "object":
      return Object.fromEntries(input.fields.filter((f) => f.required && holds(f.input)).map((f) => [f.name, empty(f.input)]));
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
      return all.map((d, i) => read(input.of, d, true, `${at}/${i}`, wrong));
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
  if (text === "" && (!required || !(input.kind === "text" && !input.date))) return required ? fail("missing") : undefined;
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
  if (input.date && !/^\d{4}-\d\d-\d\d$/.test(text)) return fail("date");
  return text;
}

function numeric(input: Extract<Input, { kind: "number" }>, text: string, fail: Fail): unknown {
  const n = Number(text.trim());
  if (text.trim() === "" || !Number.isFinite(n)) return fail("number");
  if (input.integer && !Number.isInteger(n)) return fail("integer");
  if (Number.isInteger(n) && !Number.isSafeInteger(n)) return fail("big");
  if (n < input.least) return fail("low", input.least);
  if (n <= input.above) return fail("low", input.above);
  if (n > input.most) return fail("high", input.most);
  if (n >= input.below) return fail("high", input.below);
  return n;
}

/** What somebody would have to type to get the value; undefined: the form cannot hold it. */
export function draftOf(input: Input, value: unknown): Draft | undefined {
  switch (input.kind) {
    case "json":
      return JSON.stringify(value, null, 2);
    case "text":
      return typeof value === "string" ? value : undefined;
    case "number":
      return typeof value === "number" ? String(value) : undefined;
    case "flag":
      return typeof value === "boolean" ? String(value) : undefined;
    case "choice": {
      const at = input.values.findIndex((v) => JSON.stringify(v) === JSON.stringify(value));
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
