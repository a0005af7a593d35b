// Package ledger is the runtime of services that keep logs: it folds a log, has a pure
// reducer decide, appends the decision and sends the commands that follow.
//
// A [Log] is the fold of one log with its writer. [Logs] keeps the folds of a process. A
// [Service] handles the commands of logs of one kind, each log's in order. Several
// services, and several replicas of each, may append to the same log: every append is
// conditional, and a decision is made again when another event comes first.
//
// A log that cannot be folded, has lost acknowledged events or holds an unreadable
// message is broken: the call that finds out returns the error, permanent where no
// repetition helps, and the next call reads the log anew. A tombstone ends any log, a
// broken one included.
package ledger
