/** The header with which a page asks the runtime for all later runs of a thread. CopilotKit hands headers of this kind on. */
export const followHeader = "x-waggle-follow";
