/**
 * The streams of gateways, for packages on top of this one.
 *
 * @packageDocumentation
 */
export { type BackoffOptions, rest } from "./backoff.js";
export { abortError, WaggleError } from "./failure.js";
export { baseOf, Http, type HttpRequest, query, type Token } from "./http.js";
export { type FollowOptions, type Reading, readStream } from "./log.js";
export type { SseMessage } from "./sse.js";
