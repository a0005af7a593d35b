/**
 * The AI SDK's `useChat` with chats that live in Waggle.
 *
 * @packageDocumentation
 */
export type { Token } from "@waggle-dev/client/stream";
export { WaggleError } from "@waggle-dev/client/stream";
export { type WaggleChatOptions, WaggleChatTransport } from "./transport.js";
export {
  originOf,
  questions,
  type WaggleData,
  type WaggleMetadata,
  type WaggleOrigin,
  type WaggleStep,
  type WaggleUIMessage,
} from "./types.js";
