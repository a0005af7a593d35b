type Schema = Record<string, unknown>;

/** Schemas that somebody might write to keep a page busy. */
export function hostile(): Record<string, unknown> {
  let deep: Schema = { type: "string" };
  for (let i = 0; i < 20_000; i++) deep = { type: "object", properties: { x: deep }, required: ["x"] };
  const wide = { type: "object", properties: Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`p${i}`, { type: "string" }])) };
  const bomb: Schema = { type: "object", properties: {}, $defs: {} };
  for (let i = 0; i < 40; i++)
    (bomb["$defs"] as Schema)[`d${i}`] = { oneOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] };
  (bomb["properties"] as Schema)["x"] = { $ref: "#/$defs/d0" };
  const twins = { type: "object", properties: Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`p${i}`, { $ref: "#" }])) };
  return {
    deep,
    wide,
    bomb,
    twins,
    cycle: { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } },
    choice: { enum: Array.from({ length: 1_000_000 }, (_, i) => i) },
    entries: { type: "array", minItems: 1e9, items: { type: "string" } },
    foreign: { $ref: "https://example.com/schema" },
    proto: { type: "object", properties: JSON.parse('{"__proto__":{"type":"string"}}') as unknown, required: ["__proto__"] },
    pattern: { type: "object", properties: { x: { type: "string", pattern: "(a+)+$" } } },
  };
}
