/** A JSON value in its canonical form (RFC 8785): two values are the same if their forms are. Members without a value count as absent. */
export function canonical(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.toWellFormed());
  if (Array.isArray(value)) return `[${value.map((v) => canonical(v ?? null)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).filter(([, v]) => v !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([k, v]) => `${canonical(k)}:${canonical(v)}`).join(",")}}`;
}
