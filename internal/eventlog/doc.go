// Package eventlog is the only reader and the only writer of the event logs.
//
// A log is the ordered list of one entity's events: seq 1, 2, 3, ... without
// hole or double. It is stored under one JetStream subject (evt.<p>.<log>) and
// every event is announced once more on core NATS (live.<log>.<type>).
//
// Writing: a [Writer] appends with the expected last sequence of the subject.
// An append of which the outcome is not known is never repeated blindly: the
// writer reads on from the last event it knows, adopts what it finds there and
// looks for its own event. [Deltas] merges streamed text while an append is in
// flight, because a replicated stream takes one conditional append per log at a
// time.
//
// Reading: a [Viewer] subscribes to the announcements first, then reads history
// by batched direct get and splices the two by seq. Announcements are a hint,
// they may be lost, doubled or late; gaps are healed by reading, and the tail of
// every watched log is compared with the stream after each event that may lose
// announcements (reconnect, slow consumer, new stream leader) and now and then.
// There is one subscription per watched log and Store, however many viewers it
// has, and no goroutine per log or viewer.
package eventlog
