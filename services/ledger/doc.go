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
//
// A service keeps one timer for a log, set to the earliest deadline of its state. The timer has no meaning of its own: its
// handler folds the log and decides. So a timer that is early, late or repeated does no harm, and a deadline that goes away
// needs no cancellation.
//
// A service first decides with the events that its process remembers (eventlog.Writer.Recall). The decision counts only if
// its facts are appended under the condition that the log ends there; otherwise the service reads the log, gathers the
// environment again and decides again. A request to the leader for the end of the log took 5 % of the processor time of an
// answer.
//
// The folds used last stay in memory as they are. Earlier ones rest as compressed snapshots: hundreds of folds in small
// objects cost each cycle of the garbage collector, and kept pages of the heap after a load was over. Snapshots in the
// bucket "folds" let a replica take over a long log without reading it whole. A lost or old snapshot costs time, never
// correctness.
package ledger
