import { WaggleError } from "./failure.js";

/** An error with a certain code. */
export type CodedError<C extends string> = WaggleError & { readonly code: C };

/** The class of the errors with a certain code, for `instanceof`. It cannot be constructed: the client makes errors of the codes that servers send. */
export type ErrorClass<C extends string> = abstract new (never: never) => CodedError<C>;

/** Makes the class of the errors with a code. */
export function classOf<C extends string>(code: C): ErrorClass<C> {
  const is = (error: unknown): boolean => error instanceof WaggleError && error.code === code;
  return { [Symbol.hasInstance]: is } as unknown as ErrorClass<C>;
}
