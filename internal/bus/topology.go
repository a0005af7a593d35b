package bus

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Topology says which streams and buckets there are. It is the same for all
// services of an installation.
type Topology struct {
	Replicas        int           // copies of every stream: 1 embedded, 3 in a cluster
	EventMaxAge     time.Duration // how long events are kept
	EventMaxBytes   int64         // per shard; its oldest events go first; 0 = no limit
	ObjectMaxBytes  int64         // of data that does not fit into events; at the bound more of it is refused; 0 = no limit
	CommandMaxBytes int64         // at the bound new commands are refused
	CommandMaxAge   time.Duration // a command nobody took by then is dropped
	TimerMaxBytes   int64         // at the bound the oldest schedules go first, due or not
	LeaseTTL        time.Duration // directory entries without a heartbeat
	AuditMaxAge     time.Duration // how long records of the audit log are kept
}

const (
	// maxEventBytes is the largest stored event: the largest frame that a client may
	// send, and a capped tool result, fit with their envelope.
	maxEventBytes = 256 << 10
	// wrapBytes is what the log of a team may add to an event of a member's log: teams nest
	// eight deep, and each wraps it once more, which takes less than 1 KB.
	wrapBytes = 16 << 10
	// dedupeWindow is NATS' default; later repeats are answered from the log.
	dedupeWindow = 2 * time.Minute
	// acksMaxBytes holds about half a million positions; the oldest go first.
	acksMaxBytes = 64 << 20
	// foldsMaxBytes holds the snapshots of 10,000 teams with some hundred messages each.
	foldsMaxBytes = 128 << 20
	// registryMaxAge is how long an agent or service that went away is still known: as
	// long as its events.
	registryMaxAge = 30 * 24 * time.Hour
	// registryMaxBytes holds some ten thousand agents and services with their schemas;
	// those not seen for longest go first.
	registryMaxBytes = 64 << 20
	// quotaMaxBytes holds some 200,000 holdings, of 200 bytes each with their key: twice
	// the sessions that an installation of this size is made for. At the bound nothing
	// more is admitted of what has a quota.
	quotaMaxBytes = 64 << 20
	// quotaMarkers is how long it is kept that a holding was given back. Who does not hear
	// of it by then reads the bucket anew: it has been away for longer than a lease.
	quotaMarkers = time.Hour
	// auditMaxMsg is far above the largest record, whose fields are ids.
	auditMaxMsg = 16 << 10
	// deadMaxAge gives people a month to look at dead letters.
	deadMaxAge = 30 * 24 * time.Hour
)

// DefaultAuditMaxAge keeps the audit log for a year and the month in which somebody
// asks about it.
const DefaultAuditMaxAge = 400 * 24 * time.Hour

// DefaultTopology returns the topology of a single server.
func DefaultTopology() Topology {
	return Topology{
		Replicas: 1, EventMaxAge: 30 * 24 * time.Hour,
		// NATS reserves max_bytes when it makes a stream, and 16 shards of a useful size do
		// not fit on a laptop's disk: there age alone is the limit. In a cluster 10 to 50
		// GB a shard keep the recovery of a killed server within minutes.
		EventMaxBytes:   0,
		CommandMaxBytes: 64 << 20,
		// As long as a session lives after its last event. What was accepted should survive
		// a night without workers; a day later nobody waits for the answer any more.
		CommandMaxAge: 24 * time.Hour,
		// A schedule takes about 300 bytes: most of a million timers. NATS does not let a
		// stream with schedules refuse new messages, so the bound has to be out of reach.
		TimerMaxBytes: 256 << 20,
		LeaseTTL:      30 * time.Second, // three heartbeats of 10 s
		AuditMaxAge:   DefaultAuditMaxAge,
	}
}

func (t Topology) streams() []jetstream.StreamConfig {
	out := make([]jetstream.StreamConfig, 0, subject.Partitions+5)
	for _, p := range subject.AllPartitions() {
		out = append(out, jetstream.StreamConfig{
			Name: p.EventStream(), Subjects: []string{p.EventFilter()},
			Description: "event logs, shard " + p.String(),
			Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
			Replicas: t.Replicas, MaxAge: t.EventMaxAge, MaxBytes: t.EventMaxBytes, MaxMsgSize: maxEventBytes + wrapBytes,
			Duplicates: dedupeWindow, AllowDirect: true, AllowRollup: true, DenyDelete: true,
		})
	}
	return append(out,
		t.payloads(),
		jetstream.StreamConfig{
			Name: subject.StreamCommands, Subjects: subject.StreamSubjects(subject.StreamCommands),
			Description: "commands, until they are handled",
			Retention:   jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
			Replicas: t.Replicas, MaxAge: t.CommandMaxAge, MaxBytes: t.CommandMaxBytes, MaxMsgSize: maxEventBytes,
			Duplicates: dedupeWindow, AllowDirect: true,
		},
		jetstream.StreamConfig{
			Name: subject.StreamTimers, Subjects: subject.StreamSubjects(subject.StreamTimers),
			Description: "schedules, and timers that are due",
			// A schedule stays until it is due, since no consumer takes it; what it fires
			// stays until it is handled.
			Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
			Replicas: t.Replicas, MaxBytes: t.TimerMaxBytes, MaxMsgsPerSubject: 1, Duplicates: dedupeWindow,
			AllowDirect: true, AllowMsgSchedules: true, AllowMsgTTL: true, AllowRollup: true,
		},
		jetstream.StreamConfig{
			Name: subject.StreamDead, Subjects: subject.StreamSubjects(subject.StreamDead),
			Description: "commands that were given up, with the reason",
			Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
			Replicas: t.Replicas, MaxAge: deadMaxAge, MaxBytes: t.CommandMaxBytes, Duplicates: dedupeWindow, AllowDirect: true,
		},
		jetstream.StreamConfig{
			Name: subject.StreamAudit, Subjects: subject.StreamSubjects(subject.StreamAudit),
			Description: "who did what",
			// Nobody may take a record out of it, the operator included.
			Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
			Replicas: t.Replicas, MaxAge: t.AuditMaxAge, MaxMsgSize: auditMaxMsg, Duplicates: dedupeWindow,
			AllowDirect: true, DenyDelete: true, DenyPurge: true,
		})
}

// payloads keeps data that does not fit into events, as an object store of NATS. An
// object is stored before the command that leads to its event, and must not expire before
// the event does.
func (t Topology) payloads() jetstream.StreamConfig {
	age := t.EventMaxAge
	if age > 0 {
		age += t.CommandMaxAge + PayloadReuse
	}
	return jetstream.StreamConfig{
		Name: subject.StreamPayloads, Subjects: []string{subject.PayloadChunks, subject.PayloadMetas},
		Description: "data of tasks that does not fit into events",
		Retention:   jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		// What was stored a moment ago is read at once, and a follower that is asked directly
		// may not have it yet: without AllowDirect the leader answers.
		Replicas: t.Replicas, MaxAge: age, MaxBytes: t.ObjectMaxBytes, Duplicates: dedupeWindow, AllowRollup: true,
	}
}

// PayloadReuse is how old an object may be for data that comes again not to be stored
// again: longer than any sender repeats a request.
const PayloadReuse = time.Hour

// buckets returns the key-value buckets.
func (t Topology) buckets() []jetstream.KeyValueConfig {
	return []jetstream.KeyValueConfig{t.directory(), t.acks(), t.registry(), t.quota(), t.folds()}
}

// acks keeps how far clients have read as long as the events that they read.
func (t Topology) acks() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: subject.BucketAcks, Description: "how far clients have read",
		History: 1, Storage: jetstream.FileStorage, Replicas: t.Replicas,
		TTL: t.EventMaxAge, MaxBytes: acksMaxBytes,
	}
}

// registry keeps which agents and services there are, connected or not.
func (t Topology) registry() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: subject.BucketRegistry, Description: "agents and services that were seen",
		History: 1, Storage: jetstream.FileStorage, Replicas: t.Replicas,
		TTL: registryMaxAge, MaxBytes: registryMaxBytes,
	}
}

// folds keeps snapshots of long logs as long as the logs. Where it is full there are no
// new ones, and logs are read from their beginning.
func (t Topology) folds() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: subject.BucketFolds, Description: "what long logs say, up to some event",
		History: 1, Storage: jetstream.FileStorage, Replicas: t.Replicas,
		TTL: t.EventMaxAge, MaxBytes: foldsMaxBytes,
	}
}

// quotaHistory is how many values of a key the bucket of quotas keeps: as many as a bucket
// can. A gateway decides with the sums as of its own write, so a value that another writes
// over must still reach it, however late it reads; each write waits until its writer has
// read it back, so that to fall 64 behind a gateway must be 64 round trips late.
const quotaHistory = 64

// quota keeps who has how much of what has a limit.
func (t Topology) quota() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: subject.BucketQuota, Description: "who has how much of what has a limit",
		History: quotaHistory, Storage: jetstream.FileStorage, Replicas: t.Replicas,
		LimitMarkerTTL: quotaMarkers, MaxBytes: quotaMaxBytes,
	}
}

func (t Topology) directory() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: subject.BucketDirectory, Description: "who is connected, and what it can do",
		History: 1, Storage: jetstream.FileStorage, Replicas: t.Replicas,
		TTL: t.LeaseTTL, LimitMarkerTTL: time.Minute, MaxBytes: 64 << 20,
	}
}
