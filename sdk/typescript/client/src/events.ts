/**
 * The types of events and of their data.
 *
 * @packageDocumentation
 */
export type * from "./generated/events.js";
