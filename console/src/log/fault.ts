import { WaggleError } from "@waggle-dev/client";
import type { Fault } from "./protocol.ts";

/** An error for the page. */
export function faultOf(error: unknown): Fault {
  if (error instanceof WaggleError) return { code: error.code, message: error.message, status: error.status, detail: error.detail };
  return { code: "CONSOLE", message: error instanceof Error ? error.message : String(error), status: 0, detail: undefined };
}
