/**
 * The client of a Waggle installation, for browsers and Node.
 *
 * @packageDocumentation
 */
export type { BackoffOptions } from "./backoff.js";
export { type SessionFilter, Sessions, type SwarmFilter, WaggleApi, WaggleClient, type WaggleOptions } from "./client.js";
export { GapError, WaggleError } from "./failure.js";
export type * from "./generated/api.js";
export type { Question as ListedQuestion } from "./generated/api.js";
export type { CanonicalEvent, EventType } from "./generated/events.js";
export type { CallOptions, Logger, Token } from "./http.js";
export { type ConnectionState, Watched } from "./hub.js";
export { Inbox, type QuestionFilter } from "./inbox.js";
export { hasOddId, type LiveOptions, type TopicMessage, type TopicOptions } from "./live.js";
export type { FollowOptions } from "./log.js";
export { type Artifact, Log, type LogQuery } from "./logs.js";
export type { ListOptions } from "./pages.js";
export { type Question, Questions, questionOf, type Reply, unwrap } from "./questions.js";
export { type Answer, Run } from "./run.js";
export { type CheckedClientTool, defineClientTool, type OutputOf, type StandardSchema } from "./schema.js";
export { type ClientTool, type FilePart, type SendOptions, Session } from "./session.js";
export { type NewTask, Task, type TaskResult, Tasks } from "./tasks.js";
export { Team, type TeamMessageOptions, Teams } from "./teams.js";
