/** What a message asks for. */
export interface Message {
  content: string;
  mode: "chat" | "plan";
  /** Of a chat: the agent of the swarm, by its name, that answers; none = the model. */
  agent?: string;
  /** Whether a plan asks before it runs. */
  confirm: boolean;
}

/** The body of the request that sends a message. */
export function messageBody(m: Message, id?: string): Record<string, unknown> {
  return {
    ...(id ? { id } : {}),
    content: m.content,
    ...(m.mode === "chat" && m.agent ? { agent: m.agent } : {}),
    ...(m.mode === "plan" ? { mode: "plan", confirm_plan: m.confirm } : {}),
  };
}
