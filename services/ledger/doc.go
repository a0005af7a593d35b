// Package ledger is the runtime of services that keep logs: it folds a log, lets a pure reducer
// decide, appends the decision and sends the commands that follow. It contains no rules of a kind
// of log.
//
// A [Log] is the fold of one log with its writer. [Logs] keeps the folds of a process. A [Service]
// handles the commands of logs of one kind, those of each log in order. Several services, and
// several replicas of each, may append to the same log: every append is conditional, and the
// reducer decides again if another event takes the seq.
//
// A log that cannot be folded, has lost acknowledged events or holds an unreadable message is
// broken. The call that finds it returns the error, permanent where a repeat does not help, and the
// next call reads the log anew. A tombstone ends any log, a broken one included.
package ledger
