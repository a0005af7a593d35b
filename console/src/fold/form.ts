import { canonical } from "./canonical.ts";
import { type Draft, draftOf, filled, isObject, mostEntries, type Schema } from "./draft.ts";

// Makes a form of a JSON Schema (2020-12). Schemas come from others: a form has few inputs and is not deep, references are followed
// a few times, and what a form cannot hold is a field of JSON.

/** Inputs of one form, and how deep they are. */
const mostInputs = 300;
const deepest = 5;
/** References that are followed one after the other. */
const mostRefs = 8;
/** Values of a choice. */
const mostValues = 200;
/** Values that are looked at for it: some may be of another type. */
const mostListed = 10_000;
/** Schemas of which one can be chosen. */
const mostKinds = 20;

/** A place for one value. */
export type Input =
  | { kind: "text"; least: number; most: number; pattern: string; format: "" | "date" | "date-time" }
  | { kind: "number"; integer: boolean; least: number; most: number; above: number; below: number }
  | { kind: "flag" }
  /** `titles` name the values; one that is empty is named by its value. */
  | { kind: "choice"; values: readonly unknown[]; titles: readonly string[] }
  | { kind: "list"; of: Input; least: number; most: number; unique: boolean }
  | { kind: "object"; fields: readonly Field[] }
  | { kind: "variant"; of: readonly { title: string; input: Input }[] }
  | { kind: "json" };

/** A member of an object. */
export interface Field {
  name: string;
  title: string;
  about: string;
  required: boolean;
  /** What the schema gives as the value of an absent member, and the same as a draft if that is a value of the input. */
  usual: string;
  given: Draft | undefined;
  input: Input;
}

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
    const word = "oneOf" in s ? "oneOf" : "anyOf";
    const several = s[word];
    if (Array.isArray(several)) {
      const named = says(word, "type") ? constants(several, s["type"]) : undefined;
      return named ?? (says(word) ? this.variant(several, word === "oneOf", depth) : json);
    }
    switch (s["type"]) {
      case "string":
        return says("type", "minLength", "maxLength", "pattern") ? text(s) : json;
      case "number":
      case "integer":
        return says("type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") ? number(s) : json;
      case "boolean":
        return says("type") ? { kind: "flag" } : json;
      case "array":
        return says("type", "items", "minItems", "maxItems", "uniqueItems") && isObject(s["items"]) ? this.list(s, depth) : json;
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

  /** A choice between schemas. Where exactly one of them may fit, they must be apart. */
  private variant(all: readonly unknown[], one: boolean, depth: number): Input {
    if (all.length === 0 || all.length > mostKinds) return json;
    const kinds = all.map((x) => this.resolved(x));
    if (!kinds.every((k) => k !== undefined) || (one && !apart(kinds))) return json;
    const names = kinds.map((s) => String(s["title"] ?? s["type"] ?? ""));
    const alone = (name: string) => name !== "" && names.filter((n) => n === name).length === 1;
    const of = kinds.map((s, i) => {
      const name = names[i] as string;
      return { title: alone(name) ? name : `${name} ${i + 1}`.trim(), input: this.input(s, depth + 1) };
    });
    return of.some((v) => v.input.kind === "json") ? json : { kind: "variant", of };
  }

  private list(s: Schema, depth: number): Input {
    const [least, most] = [limit(s["minItems"], 0), limit(s["maxItems"], Number.POSITIVE_INFINITY)];
    const of = this.input(s["items"], depth + 1);
    return least > mostEntries || of.kind === "json" ? json : { kind: "list", of, least, most, unique: s["uniqueItems"] === true };
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
      const input = this.member(of ?? members[name], required.includes(name), depth + 1);
      const given = usual === "" ? undefined : preset(input, of?.["default"]);
      return {
        name,
        title: typeof of?.["title"] === "string" ? of["title"] : name,
        about: typeof of?.["description"] === "string" ? of["description"] : "",
        required: required.includes(name),
        usual: usual.length > 80 ? "" : (titleOf(input, given) ?? usual),
        given,
        input,
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

/** The draft of a default, if the form accepts it. */
function preset(input: Input, value: unknown): Draft | undefined {
  const draft = draftOf(input, value);
  return draft !== undefined && filled(input, draft).wrong.length === 0 ? draft : undefined;
}

/** The title of a chosen value, if it has one. */
function titleOf(input: Input, draft: Draft | undefined): string | undefined {
  return (input.kind === "choice" && typeof draft === "string" && input.titles[Number(draft)]) || undefined;
}

/** Whether a value that the form of one schema makes fits none of the others. */
function apart(all: readonly Schema[]): boolean {
  return all.every((made, i) => all.every((other, j) => i === j || refuses(other, made)));
}

/** Whether a schema refuses all values that the form of another one makes: it has other types, values or members. */
function refuses(s: Schema, made: Schema): boolean {
  const [type, theirs] = [scalarType(s), scalarType(made)];
  if (type && theirs && type !== theirs) return true;
  if (disjoint(s, made)) return true;
  if (type !== "object" || theirs !== "object") return false;
  const [own, members] = [membersOf(s), membersOf(made)];
  const [needs, has] = [requiredOf(s), requiredOf(made)];
  return (
    needs.some((name) => !Object.hasOwn(members, name)) ||
    [...needs, ...has].some((name) => {
      const [a, b] = [Object.hasOwn(own, name) && own[name], Object.hasOwn(members, name) && members[name]];
      return isObject(a) && isObject(b) && disjoint(a, b);
    })
  );
}

const scalarType = (s: Schema) => (s["type"] === "integer" ? "number" : typeof s["type"] === "string" ? s["type"] : undefined);
const membersOf = (s: Schema): Schema => (isObject(s["properties"]) ? s["properties"] : {});
const requiredOf = (s: Schema): string[] => (Array.isArray(s["required"]) ? s["required"].filter((n) => typeof n === "string") : []);

/** Whether both schemas list their values, and share none. */
function disjoint(a: Schema, b: Schema): boolean {
  const [of, others] = [valuesOf(a), valuesOf(b)];
  if (!of || !others) return false;
  const known = new Set(of.map(canonical));
  return !others.some((v) => known.has(canonical(v)));
}

function valuesOf(s: Schema): readonly unknown[] | undefined {
  if ("const" in s) return [s["const"]];
  const all = s["enum"];
  return Array.isArray(all) && all.length <= mostValues ? all : undefined;
}

/** The choice between named constants: that is how a schema gives its values titles. */
function constants(all: readonly unknown[], type: unknown): Input | undefined {
  if (all.length === 0 || all.length > mostValues) return undefined;
  const named = all.map((x) => (isObject(x) && "const" in x && Object.keys(x).every((k) => notes.has(k) || k === "const") ? x : undefined));
  if (!named.every((x) => x !== undefined)) return undefined;
  const fitting = named.filter((x) => type === undefined || typeOf(x["const"], type));
  const title = (x: Schema) => (typeof x["title"] === "string" ? x["title"] : "");
  return choice(
    fitting.map((x) => x["const"]),
    undefined,
    fitting.map(title),
  );
}

function choice(values: readonly unknown[], type: unknown, titles: readonly string[] = []): Input {
  if (values.length > mostListed) return json;
  const fitting = values.filter((v) => type === undefined || typeOf(v, type));
  if (fitting.length === 0 || fitting.length > mostValues) return json;
  return new Set(fitting.map(canonical)).size === fitting.length ? { kind: "choice", values: fitting, titles } : json;
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
    format: format === "date" || format === "date-time" ? format : "",
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
