/** A time of the day and a date without a zone, as inputs of the platform have them: `2026-01-31T14:00:00`. */
export function zoneless(moment: string, utc: boolean): string {
  const at = Date.parse(moment);
  if (Number.isNaN(at)) return "";
  const shown = new Date(utc ? at : at - new Date(at).getTimezoneOffset() * 60_000);
  return Number.isNaN(shown.getTime()) || !/^\d{4}-/.test(shown.toISOString()) ? "" : shown.toISOString().slice(0, 19);
}

/** The moment (RFC 3339, in UTC) of a time without a zone; empty: it is none. */
export function momentOf(zoneless: string, utc: boolean): string {
  const at = new Date(utc ? `${zoneless}Z` : zoneless);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString().replace(".000Z", "Z");
}
