import { WaggleError } from "./errors.js";
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
  const standard = input["~standard"];
  const inputSchema = tool.inputSchema ?? standard.jsonSchema?.input({ target: "draft-2020-12" });
  if (inputSchema === undefined) {
    const message = `${standard.vendor} does not say the JSON Schema of input: pass it as inputSchema, such as z.toJSONSchema(schema)`;
    throw new WaggleError("INVALID_FIELD", message, { field: "inputSchema" });
  }
  return {
    ...tool,
    inputSchema,
    run: async (params, call) => {
      const checked = await standard.validate(params);
      if (checked.issues === undefined) return tool.run(checked.value, call);
      throw new WaggleError("INVALID_INPUT", checked.issues.map(said).join("; "), { detail: checked.issues });
    },
  };
}

function said({ message, path = [] }: { message: string; path?: readonly (PropertyKey | { key: PropertyKey })[] | undefined }): string {
  const at = path.map((p) => String(typeof p === "object" ? p.key : p)).join(".");
  return at ? `${at}: ${message}` : message;
}
