/**
 * The time in milliseconds that a task or a call had when the server sent it, or undefined if it has no deadline. Both moments are by
 * the server's clock, which need not be this machine's.
 */
export function timeLimit(metadata: { timestamp?: unknown; deadline?: unknown } | undefined): number | undefined {
  const { timestamp, deadline } = metadata ?? {};
  if (typeof timestamp !== "string" || typeof deadline !== "string") return undefined;
  const left = Date.parse(deadline) - Date.parse(timestamp);
  return Number.isNaN(left) ? undefined : Math.max(left, 0);
}
