/**
 * All errors: each code of the catalogue has a class, for `instanceof`.
 *
 * @packageDocumentation
 */
import { type Class, type Coded, classOf } from "./coded.js";

export { GapError, WaggleError } from "./failure.js";
export * from "./generated/classes.js";
export type { Class, Coded };

/** No gateway can be reached, or an answer broke off. */
export const UnreachableError: Class<"UNREACHABLE"> = /*#__PURE__*/ classOf("UNREACHABLE");
export type UnreachableError = Coded<"UNREACHABLE">;

/** The program has closed this. */
export const ClosedError: Class<"CLOSED"> = /*#__PURE__*/ classOf("CLOSED");
export type ClosedError = Coded<"CLOSED">;
