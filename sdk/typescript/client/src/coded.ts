import { WaggleError } from "./failure.js";

/** An error with a certain code. */
export type Coded<C extends string> = WaggleError & { readonly code: C };

/** A class of errors: `instanceof` tells whether an error has its code. */
export type Class<C extends string> = abstract new (never: never) => Coded<C>;

/** The class of the errors with a code. Nothing is made of it: the client makes errors of the codes that servers send. */
export function classOf<C extends string>(code: C): Class<C> {
  const is = (error: unknown): boolean => error instanceof WaggleError && error.code === code;
  return { [Symbol.hasInstance]: is } as unknown as Class<C>;
}
