/** What a message asks for. */
export interface Message {
  content: string;
  mode: "chat" | "plan";
  /** Whether a plan asks before it runs. */
  confirm: boolean;
}

/** The body of the request that sends a message. */
export function messageBody(m: Message, id?: string): Record<string, unknown> {
  return {
    ...(id ? { id } : {}),
    content: m.content,
    ...(m.mode === "plan" ? { mode: "plan", confirm_plan: m.confirm } : {}),
  };
}
