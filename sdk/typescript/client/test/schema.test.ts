import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { defineClientTool, WaggleError } from "@waggle-dev/client";
import type { MessageDeltaData } from "@waggle-dev/client/events";
import { defineTool, type StandardSchema, type ToolCall } from "@waggle-dev/client/swarm";
import { type } from "arktype";
import * as v from "valibot";
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod-4";
import { webSocketOf } from "../src/swarm.js";

type City = { city: string; days: number };

/** A schema as zod makes them: it knows a default. */
const schema = (jsonSchema?: object): StandardSchema<City> => ({
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) => {
      const { city, days = 1 } = value as Partial<City>;
      if (typeof city === "string") return { value: { city, days } };
      return { issues: [{ message: "expected a text", path: ["city", { key: 0 }] }, { message: "that is all" }] };
    },
    ...(jsonSchema ? { jsonSchema: { input: () => ({ ...jsonSchema }) } } : {}),
  },
});
const call = {} as ToolCall;

test("a schema types the parameters of a tool and checks them, and the server is told its JSON Schema", async () => {
  const tool = defineTool({
    id: "forecast",
    input: schema({ type: "object" }),
    run: (p) => {
      expectTypeOf(p).toEqualTypeOf<City>();
      return `${p.city.toUpperCase()} ${p.days}`;
    },
  });
  expect(tool).toMatchObject({ id: "forecast", inputSchema: { type: "object" } });
  expect(Object.keys(tool)).not.toContain("input");
  expect(await tool.run({ city: "Bern" } as City, call)).toBe("BERN 1");
  const wrong = tool.run({} as City, call);
  await expect(wrong).rejects.toMatchObject({ code: "INVALID_INPUT", message: "city.0: expected a text; that is all" });
});

test("a schema that does not say its JSON Schema needs it beside it", () => {
  const run = () => null;
  expect(defineTool({ id: "x", input: schema(), inputSchema: { type: "object" }, run }).inputSchema).toEqual({ type: "object" });
  expect(() => defineTool({ id: "x", input: schema(), run })).toThrow("test does not say the JSON Schema of input: pass it as inputSchema");
  const plain = { id: "x", inputSchema: { type: "object" }, run };
  expect(defineTool(plain)).toBe(plain);
});

test("without a WebSocket an agent says what to install", async () => {
  const missing = webSocketOf(() => Promise.reject(new Error("Cannot find package 'ws'")));
  await expect(missing).rejects.toThrow("npm i ws");
  await expect(missing).rejects.toBeInstanceOf(WaggleError);
  expect(await webSocketOf(() => Promise.resolve({ WebSocket: 1 }))).toBe(1);
});

test("the data of events have types of their own", () => {
  expectTypeOf<MessageDeltaData["text"]>().toEqualTypeOf<string>();
});

const params = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

test.each([
  ["zod", z.object({ city: z.string() })],
  ["valibot", toStandardJsonSchema(v.object({ city: v.string() }))],
  ["arktype", type({ city: "string" })],
])("%s describes, types and checks the arguments of a tool of the program", async (_, input) => {
  const tool = defineClientTool({
    description: "Tells the weather.",
    input: input as StandardSchema<{ city: string }>,
    run: ({ city }) => `sunny in ${city}`,
  });
  expect(tool.inputSchema).toMatchObject(params);
  expect(await tool.run({ city: "Lisbon" })).toBe("sunny in Lisbon");
  await expect(tool.run({ city: 7 })).rejects.toMatchObject({ code: "INVALID_INPUT", message: expect.stringMatching(/city/) });
});

test("the schemas of the libraries type the arguments", () => {
  defineClientTool({ description: "", input: z.object({ n: z.number() }), run: (a) => expectTypeOf(a).toEqualTypeOf<{ n: number }>() });
  const valibot = toStandardJsonSchema(v.object({ n: v.number() }));
  defineClientTool({ description: "", input: valibot, run: (a) => expectTypeOf(a).toEqualTypeOf<{ n: number }>() });
  defineClientTool({ description: "", input: type({ n: "number" }), run: (a) => expectTypeOf(a).toEqualTypeOf<{ n: number }>() });
  expect(() => defineClientTool({ description: "", input: schema(), run: () => "" })).toThrow(/pass it as inputSchema/);
});
