import { expect, test } from "vitest";
import { argumentsOf, readArguments } from "../src/edit.js";

const call = (id: string, args: string) => ({ role: "assistant", toolCalls: [{ id, function: { arguments: args } }] });
const changeable = { properties: { approved: {}, editedArgs: { type: "object" } } };

test.each([
  ["as it is", { toolCallId: "b", responseSchema: changeable }, { path: "b" }],
  ["without arguments", { toolCallId: "c", responseSchema: changeable }, {}],
  ["of another message", { toolCallId: "z", responseSchema: changeable }, undefined],
  ["that cannot be changed", { toolCallId: "b", responseSchema: { properties: { approved: {} } } }, undefined],
  ["of a question without a schema", { toolCallId: "b" }, undefined],
])("the arguments of a call %s", (_, question, args) => {
  const said = [{ role: "user" }, call("a", '{"path":"a"}'), call("b", '{"path":"b"}'), call("c", "")];
  expect(argumentsOf(question, said)).toEqual(args);
});

test.each([
  ['{"path": 7}', { args: { path: 7 } }],
  ["[1]", { problem: "Write the arguments as an object: { … }." }],
  ["null", { problem: "Write the arguments as an object: { … }." }],
  ["{", { problem: expect.stringMatching(/^This is not JSON: /) }],
])("people write %s", (text, read) => {
  expect(readArguments(text)).toEqual(read);
});
