import { retryableCodes } from "./generated/codes.js";

/** An error of the server, or of the way to it. */
export class WaggleError extends Error {
  override readonly name: string = "WaggleError";
  /** A code of the error catalogue, such as `SESSION_NOT_FOUND`; `UNREACHABLE`, `CLOSED` or `GAP` where the server said nothing. */
  readonly code: string;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** Of an HTTP answer, else 0. */
  readonly status: number;
  /** The offending member of the request, if one is named. */
  readonly field: string | undefined;
  /** The whole problem document or frame. */
  readonly detail: unknown;

  constructor(
    code: string,
    message: string,
    more: { status?: number; field?: string; detail?: unknown; retryable?: boolean; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.status = more.status ?? 0;
    this.field = more.field;
    this.detail = more.detail;
    this.retryable = more.retryable ?? (code === unreachable || retryableCodes.has(code));
  }
}

/** The code of an error without an answer of the server. */
export const unreachable = "UNREACHABLE";

/** What a text of the server says in JSON. Anything else does not come from a gateway, or is cut: it counts as a broken connection. */
export function parsed<T>(text: string, of: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new WaggleError(unreachable, `${of} is not JSON`, { cause });
  }
}

/** The server has left positions of a log out, or has repeated some. The connection is made again. */
export class GapError extends WaggleError {
  override readonly name = "GapError";
  constructor(
    readonly after: number,
    readonly from: number,
    readonly to: number,
  ) {
    super("GAP", `the events after position ${after} go on with ${from} to ${to}`, { retryable: true });
  }
}

/** The error of calls after `close()`. */
export function closedError(): WaggleError {
  return new WaggleError("CLOSED", "this was closed by the program", { retryable: false });
}

/** The error of a call whose signal was aborted. */
export function abortError(signal: AbortSignal): unknown {
  return signal.reason ?? new DOMException("This operation was aborted", "AbortError");
}

/** Reads a problem document (RFC 9457). */
export function problemError(status: number, body: string): WaggleError {
  let p: { title?: string; detail?: string; field?: string } | undefined;
  try {
    p = JSON.parse(body);
  } catch {
    p = undefined;
  }
  if (!p?.title || !p.detail) {
    return new WaggleError(`HTTP_${status}`, `the server answered with status ${status}`, {
      status,
      detail: body,
      retryable: transient(status),
    });
  }
  return new WaggleError(p.title, p.detail, { status, detail: p, ...(p.field === undefined ? {} : { field: p.field }) });
}

/** Whether a server that answers with the status may do what it was asked for later. */
export function transient(status: number): boolean {
  return status === 429 || status === 408 || status >= 500;
}
