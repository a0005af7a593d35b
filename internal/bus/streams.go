package bus

import (
	"cmp"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// streams returns all streams, those of buckets included.
func (t Topology) streams(n subject.Partitions) []jetstream.StreamConfig {
	out := make([]jetstream.StreamConfig, 0, n+21)
	for _, p := range n.All() {
		out = append(out, jetstream.StreamConfig{
			Name: p.EventStream(), Subjects: []string{p.EventFilter()},
			Description: "event logs, shard " + p.String(),
			Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
			Replicas: t.Replicas, MaxAge: t.EventMaxAge, MaxBytes: t.EventMaxBytes, MaxMsgSize: maxEventBytes + wrapBytes,
			MaxMsgsPerSubject: eventsPerLog, Duplicates: eventDedupe, AllowDirect: true, DenyDelete: true, Compression: compressed,
			Metadata: partitioned(n),
		})
	}
	out = append(out, t.buckets()...)
	for _, s := range subject.TimerServices() {
		out = append(out, t.timers(s))
	}
	return append(out,
		t.payloads(),
		t.index(),
		jetstream.StreamConfig{
			Name: subject.StreamCommands, Subjects: subject.StreamSubjects(subject.StreamCommands),
			Description: "commands, until they are handled",
			Retention:   jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
			Replicas: t.Replicas, MaxAge: t.CommandMaxAge, MaxBytes: t.CommandMaxBytes, MaxMsgSize: maxEventBytes,
			Duplicates: commandDedupe, AllowDirect: true, AllowAtomicPublish: true, DenyPurge: true, Metadata: partitioned(n),
		},
		jetstream.StreamConfig{
			Name: subject.StreamDead, Subjects: subject.StreamSubjects(subject.StreamDead),
			Description: "commands that were given up, with the reason",
			Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
			Replicas: t.Replicas, MaxAge: deadMaxAge, MaxBytes: t.CommandMaxBytes, Duplicates: dedupeWindow, AllowDirect: true,
		},
		jetstream.StreamConfig{
			Name: subject.StreamAudit, Subjects: subject.StreamSubjects(subject.StreamAudit),
			Description: "audit records",
			// No user may remove a record, the operator included. At its bound the log drops the oldest records: to
			// refuse new ones would let a flood hide everything that follows it.
			Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
			Replicas: t.Replicas, MaxAge: t.AuditMaxAge, MaxBytes: t.AuditMaxBytes, MaxMsgSize: auditMaxMsg, Duplicates: dedupeWindow,
			AllowDirect: true, DenyDelete: true, DenyPurge: true, Compression: compressed,
		})
}

// partitionsKey names the number of partitions in the metadata of streams whose subjects depend on it. Streams without it
// have subject.DefaultPartitions.
const partitionsKey = "waggle_partitions"

func partitioned(n subject.Partitions) map[string]string {
	if n == subject.DefaultPartitions {
		return nil
	}
	return map[string]string{partitionsKey: strconv.Itoa(int(n))}
}

// partitionsOf returns the number of partitions that a stream was made for.
func partitionsOf(c jetstream.StreamConfig) string {
	return cmp.Or(c.Metadata[partitionsKey], strconv.Itoa(int(subject.DefaultPartitions)))
}

// compressed is the compression of streams that keep what they get: the server packs each block of 4 to 8 MB once it is full.
// Events of one log repeat each other's fields, so they take a fifth of their size then.
const compressed = jetstream.S2Compression

// timers keeps the timers of one service. NATS allows roll-ups in every stream with schedules, and lets a schedule fire
// on every subject of its stream: a role must not share the stream with others.
func (t Topology) timers(service id.Name) jetstream.StreamConfig {
	bound := t.beside(openPart, timerMinBytes)
	if service == command.Session {
		bound *= 2
	}
	return jetstream.StreamConfig{
		Name: subject.TimerStream(service), Subjects: subject.TimerSubjects(service),
		Description: "schedules of the service " + service.String() + ", and its timers that are due",
		// A schedule stays until it is due, because no consumer takes it; the message that it fires stays until a
		// service has handled it.
		Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
		Replicas: t.Replicas, MaxBytes: bound, MaxMsgsPerSubject: 1, Duplicates: dedupeWindow,
		AllowDirect: true, AllowMsgSchedules: true, AllowMsgTTL: true, AllowRollup: true,
	}
}

// payloads stores data that does not fit into events, as an object store of NATS. A service stores an object before
// the command that leads to its event, so the object must not expire before the event.
func (t Topology) payloads() jetstream.StreamConfig {
	age := t.EventMaxAge
	if age > 0 {
		age += t.CommandMaxAge + PayloadReuse
	}
	return jetstream.StreamConfig{
		Name: subject.StreamPayloads, Subjects: []string{subject.PayloadChunks, subject.PayloadMetas},
		Description: "data of tasks that does not fit into events",
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		// Readers read an object at once after its write. AllowDirect would let a follower answer that may not have it
		// yet; without it the leader answers.
		Replicas: t.Replicas, MaxAge: age, MaxBytes: t.ObjectMaxBytes, Duplicates: dedupeWindow,
	}
}

// PayloadReuse is the maximum age of a stored object that repeated data reuses: longer than any sender repeats a
// request.
const PayloadReuse = time.Hour

// index keeps summaries of logs and their questions to people as long as their events. A change of a summary replaces it
// and moves it to the end, so the order of the stream is that of the changes. At its bound the stream drops the entries
// that changed first: lists then lack these, and nothing else does. The session service purges those of deleted logs. A
// marker with a time to live replaces a question that is not open any more.
func (t Topology) index() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: subject.StreamIndex, Subjects: subject.StreamSubjects(subject.StreamIndex),
		Description: "summaries of logs for lists, the newest change last",
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
		Replicas: t.Replicas, MaxAge: t.EventMaxAge, MaxBytes: t.beside(indexPart, indexMinBytes), MaxMsgSize: indexMaxMsg, MaxMsgsPerSubject: 1,
		Duplicates: dedupeWindow, AllowDirect: true, AllowMsgTTL: true, DenyDelete: true,
	}
}
