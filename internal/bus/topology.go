package bus

import "time"

// Topology configures the streams and buckets. All services of an installation use the same one.
type Topology struct {
	Replicas        int           // copies of every stream: 1 embedded, 3 in a cluster
	EventMaxAge     time.Duration // retention of events
	EventMaxBytes   int64         // per shard; drops the oldest events first; 0 = unlimited
	ObjectMaxBytes  int64         // of payloads; refuses more at the bound; 0 = unlimited
	CommandMaxBytes int64         // refuses new commands at the bound
	CommandMaxAge   time.Duration // drops a command that no service took by then
	LeaseTTL        time.Duration // of directory entries without a heartbeat
	AuditMaxAge     time.Duration // retention of audit records
	AuditMaxBytes   int64         // drops the oldest audit records first
}

const (
	// maxEventBytes is the size of the largest stored event: the largest frame that a client may send, and a capped
	// tool result, fit with their envelope.
	maxEventBytes = 256 << 10
	// wrapBytes bounds the bytes that a team's log adds to an event of a member's log: teams nest eight deep, and each
	// level wraps the event once more, which takes less than 1 KB.
	wrapBytes = 16 << 10
	// dedupeWindow is NATS' default; the log answers later repeats.
	dedupeWindow = 2 * time.Minute
	// eventDedupe is enough for the repeats of an append, which expects the end of its log besides: a later repeat is refused and
	// finds its event. The server holds some 250 bytes for each message of a window, 90 MB for two minutes of busy chats.
	eventDedupe = 15 * time.Second
	// commandDedupe is twice as long as a sender repeats a command whose acknowledgement is missing. A service that gets a later
	// repeat finds the command in its log.
	commandDedupe = 30 * time.Second
	// No log reaches eventsPerLog: the server gives a stream with such a limit, and none of its bytes, blocks of 4 MB
	// in place of 8 MB. It holds the last block of each of the 16 shards in memory.
	eventsPerLog = 1 << 40
	// acksMinBytes holds about half a million positions; the bucket drops the oldest first.
	acksMinBytes = 64 << 20
	// foldsMinBytes holds the snapshots of 750 long chats, or of 10,000 teams with some hundred messages each; the bucket drops
	// the oldest first.
	foldsMinBytes = 128 << 20
	// registryMaxAge is the time for which the registry keeps an absent agent or provider: as long as its events.
	registryMaxAge = 30 * 24 * time.Hour
	// registryMaxBytes holds 100,000 agents with a description of 200 bytes, which take 44 MiB, or some ten thousand
	// providers with their schemas. A full bucket refuses new entries: participants beyond it are known while they are
	// connected.
	registryMaxBytes = 64 << 20
	// quotaMinBytes holds some 400,000 holdings, of 150 bytes each. At the bound the bucket refuses further holdings, so services refuse
	// work that has a quota.
	quotaMinBytes = 64 << 20
	// timerMinBytes holds some 200,000 schedules, of 300 bytes each; the session service has twice as many. At the bound the stream drops
	// the oldest, due or not: NATS does not let a stream with schedules refuse new messages.
	timerMinBytes = 64 << 20
	// quotaMarkers is the time for which the bucket keeps the marker of a returned holding. A process that misses it
	// has been away for longer than a lease, and reads the whole bucket again.
	quotaMarkers = time.Hour
	// directoryMaxBytes holds more than 100,000 members.
	directoryMaxBytes = 64 << 20
	// indexMinBytes holds the summaries of some 350,000 sessions, of 370 bytes each; the index drops those that changed first.
	indexMinBytes = 128 << 20
	// indexMaxMsg is far above the largest summary.
	indexMaxMsg = 16 << 10
	// auditMaxMsg is far above the largest record, whose fields are ids.
	auditMaxMsg = 16 << 10
	// deadMaxAge gives people a month to look at dead letters.
	deadMaxAge = 30 * 24 * time.Hour
)

// beside bounds a stream that has something for each log: where events have a bound, to one part in so many of that of a shard, at least
// to a size that small installations need. Where events have none, neither has it: it cannot fill a volume that events do not fill first.
func (t Topology) beside(part, least int64) int64 {
	if t.EventMaxBytes == 0 {
		return 0
	}
	return max(t.EventMaxBytes/part, least)
}

// A session is in lists as long as it has events, for a month by default, and has a timer and a quota while it is open, for a day.
const (
	indexPart = 8
	foldsPart = 16
	openPart  = 32
)

// DefaultAuditMaxAge keeps the audit log for a year and a month, so that a question about the last year still finds
// all records.
const DefaultAuditMaxAge = 400 * 24 * time.Hour

// DefaultAuditMaxBytes holds some 800,000 records of 600 bytes with their chains: 2,000 a day for 400 days.
const DefaultAuditMaxBytes = 512 << 20

// DefaultTopology returns the topology of a single server.
func DefaultTopology() Topology {
	return Topology{
		Replicas: 1, EventMaxAge: 30 * 24 * time.Hour,
		// NATS reserves max_bytes when it creates a stream, and 16 shards of a useful size do not fit on a laptop's
		// disk: there age alone is the limit. In a cluster 10 to 50 GB a shard keep the recovery of a killed server
		// within minutes.
		EventMaxBytes:   0,
		CommandMaxBytes: 64 << 20,
		// A session lives as long after its last event. An accepted command should survive a night without workers; a
		// day later the answer comes too late to be useful.
		CommandMaxAge: 24 * time.Hour,
		LeaseTTL:      30 * time.Second, // three heartbeats of 10 s
		AuditMaxAge:   DefaultAuditMaxAge,
		AuditMaxBytes: DefaultAuditMaxBytes,
	}
}
