// Package eventlog is the only reader and the only writer of the event logs.
//
// A log is the ordered list of one entity's events: seq 1, 2, 3, ... without gaps or duplicates. It is stored under
// one JetStream subject (evt.<p>.<log>), and every event is announced once more on core NATS (live.<log>.<type>).
//
// Writing: a [Writer] appends with the expected last sequence of the subject. It never blindly repeats an append with
// an unknown outcome: it reads on from its last known event, adopts the entries that it finds and looks for its own
// event. [Deltas] merges streamed text while an append is in flight, because a replicated stream takes one
// conditional append per log at a time.
//
// Reading: a [Viewer] subscribes to the announcements first, then reads history by batched direct get and joins the
// two by seq. Announcements are hints: they may be lost, duplicated or late. The Store fills gaps by reading, and
// compares the tail of every watched log with the stream at intervals and after each event that may lose
// announcements (reconnect, slow consumer, new stream leader). It has one subscription per watched log, for any
// number of viewers, and does not need a goroutine per log or viewer.
package eventlog
