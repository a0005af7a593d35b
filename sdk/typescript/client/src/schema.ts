import { WaggleError } from "./failure.js";
import type { ClientTool } from "./session.js";
import type { ToolDefinition } from "./swarm.js";

/** What is needed of a schema of zod, Valibot, ArkType or another library that follows Standard Schema. */
export interface StandardSchema<Out = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: unknown; readonly output: Out } | undefined;
    readonly validate: (value: unknown) => Outcome<Out> | Promise<Outcome<Out>>;
    /** Of libraries that can say their JSON Schema, such as zod 4.2 or newer. */
    readonly jsonSchema?: { readonly input: (o: { readonly target: "draft-2020-12" }) => Record<string, unknown> } | undefined;
  };
}

/** What comes of checking a value. */
export type Outcome<Out> =
  | { readonly value: Out; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[];
    };

/** The type of a value that a schema has checked. */
export type OutputOf<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["output"];

/** A tool whose parameters a schema types and checks. */
export interface CheckedTool<S extends StandardSchema> extends ToolDefinition<OutputOf<S>> {
  input: S;
}

/** @internal A tool that checks its parameters. The server is told their JSON Schema. */
export function checkedTool<S extends StandardSchema>({ input, ...tool }: CheckedTool<S>): ToolDefinition {
  const inputSchema = tool.inputSchema ?? jsonSchemaOf(input);
  return { ...tool, inputSchema, run: async (params, call) => tool.run(await checked(input, params), call) };
}

/** A tool of the program that sends a message, whose arguments a schema types and checks. */
export interface CheckedClientTool<S extends StandardSchema> {
  description: string;
  input: S;
  /** The JSON Schema of the arguments, for a library of `input` that cannot make it. */
  inputSchema?: object;
  /** Runs a call. The model is told why it throws, or why the arguments do not fit. */
  run: (args: OutputOf<S>) => unknown;
}

/** Describes a tool for `send`. A schema in `input`, as of zod, types the arguments of `run` and checks them before it. */
export function defineClientTool<S extends StandardSchema>({ input, ...tool }: CheckedClientTool<S>): ClientTool {
  const inputSchema = tool.inputSchema ?? jsonSchemaOf(input);
  return { description: tool.description, inputSchema, run: async (args: unknown) => tool.run(await checked(input, args)) };
}

/** The JSON Schema of a schema. */
function jsonSchemaOf(input: StandardSchema): Record<string, unknown> {
  const standard = input["~standard"];
  const schema = standard.jsonSchema?.input({ target: "draft-2020-12" });
  if (schema !== undefined) return schema;
  const message = `${standard.vendor} does not say the JSON Schema of input: pass it as inputSchema, such as z.toJSONSchema(schema)`;
  throw new WaggleError("INVALID_FIELD", message, { field: "inputSchema" });
}

async function checked<S extends StandardSchema>(input: S, value: unknown): Promise<OutputOf<S>> {
  const outcome = await input["~standard"].validate(value);
  if (outcome.issues === undefined) return outcome.value as OutputOf<S>;
  throw new WaggleError("INVALID_INPUT", outcome.issues.map(said).join("; "), { detail: outcome.issues });
}

function said({ message, path = [] }: { message: string; path?: readonly (PropertyKey | { key: PropertyKey })[] | undefined }): string {
  const at = path.map((p) => String(typeof p === "object" ? p.key : p)).join(".");
  return at ? `${at}: ${message}` : message;
}
