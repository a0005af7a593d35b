/** The arguments of a call: an object, by the schema of its tool. */
export type CallArguments = Record<string, unknown>;

/** What is looked at of a message. */
interface Said {
  role: string;
  toolCalls?: { id: string; function: { arguments: string } }[] | undefined;
}

/** The arguments that people have written, or what is wrong with them. */
export function readArguments(text: string): { args?: CallArguments; problem?: string } {
  try {
    const args: unknown = JSON.parse(text);
    if (typeof args === "object" && args !== null && !Array.isArray(args)) return { args: args as CallArguments };
    return { problem: "Write the arguments as an object: { … }." };
  } catch (error) {
    return { problem: `This is not JSON: ${(error as Error).message}` };
  }
}

/** The arguments of the call that a question is about; undefined: they cannot be changed. */
export function argumentsOf(
  question: { toolCallId?: string | undefined; responseSchema?: unknown },
  messages: readonly Said[],
): CallArguments | undefined {
  const { properties } = (question.responseSchema ?? {}) as { properties?: Record<string, unknown> };
  if (properties?.["editedArgs"] === undefined) return undefined;
  const call = messages.flatMap((m) => m.toolCalls ?? []).findLast((c) => c.id === question.toolCallId);
  return call && readArguments(call.function.arguments || "{}").args;
}
