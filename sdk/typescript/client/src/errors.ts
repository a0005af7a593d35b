/**
 * A class for each code of the error catalogue, for `instanceof`.
 *
 * @packageDocumentation
 */
import { type CodedError, classOf, type ErrorClass } from "./coded.js";

export { GapError, WaggleError } from "./failure.js";
export * from "./generated/classes.js";
export type { CodedError, ErrorClass };

/** No gateway can be reached, or an answer broke off. */
export const UnreachableError: ErrorClass<"UNREACHABLE"> = /*#__PURE__*/ classOf("UNREACHABLE");
export type UnreachableError = CodedError<"UNREACHABLE">;

/** The program has closed this. */
export const ClosedError: ErrorClass<"CLOSED"> = /*#__PURE__*/ classOf("CLOSED");
export type ClosedError = CodedError<"CLOSED">;
