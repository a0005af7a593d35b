package bus

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// buckets returns the streams of the key-value buckets. Waggle makes these streams itself, because the client library
// allows roll-ups in every bucket: one message of a user that may write one key could then remove the keys of all
// other users.
func (t Topology) buckets() []jetstream.StreamConfig {
	out := []jetstream.StreamConfig{t.directory(), t.acks(), t.registry(), t.folds()}
	for _, name := range subject.QuotaBuckets() {
		out = append(out, t.quota(name))
	}
	return out
}

// bucket returns the stream of a bucket whose keys live for a time (0 = without end). It has the settings that the
// client library gives a bucket, but refuses roll-ups and purges.
func (t Topology) bucket(name, description string, ttl time.Duration, maxBytes int64) jetstream.StreamConfig {
	dedupe := dedupeWindow
	if ttl > 0 {
		dedupe = min(dedupe, ttl)
	}
	return jetstream.StreamConfig{
		Name: subject.BucketStream(name), Subjects: []string{subject.BucketSubject(name, ">")}, Description: description,
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		Replicas: t.Replicas, MaxAge: ttl, MaxBytes: maxBytes, MaxMsgsPerSubject: 1, Duplicates: dedupe,
		AllowDirect: true, DenyDelete: true, DenyPurge: true,
	}
}

// acks keeps the positions of clients as long as the events that they read; a full bucket drops the oldest. The session service purges those
// of deleted logs.
func (t Topology) acks() jetstream.StreamConfig {
	s := t.bucket(subject.BucketAcks, "how far clients have read", t.EventMaxAge, t.beside(openPart, acksMinBytes))
	s.Discard, s.DenyPurge = jetstream.DiscardOld, false
	return s
}

// registry keeps the known agents and providers, connected or not.
func (t Topology) registry() jetstream.StreamConfig {
	return t.bucket(subject.BucketRegistry, "agents and services that were seen", registryMaxAge, registryMaxBytes)
}

// folds keeps snapshots of long logs as long as the logs. A full bucket drops the oldest snapshots; services then read
// these logs from their beginning.
func (t Topology) folds() jetstream.StreamConfig {
	s := t.bucket(subject.BucketFolds, "snapshots of long logs", t.EventMaxAge, t.beside(foldsPart, foldsMinBytes))
	s.Discard = jetstream.DiscardOld
	return s
}

// directory keeps leases. It leaves no markers of expired ones, because NATS allows roll-ups in every stream with such
// markers: followers look up a lease that was not renewed.
func (t Topology) directory() jetstream.StreamConfig {
	s := t.bucket(subject.BucketDirectory, "live instances and connections, with their abilities", t.LeaseTTL, directoryMaxBytes)
	s.AllowMsgTTL = true // of earlier versions; NATS cannot take it back
	return s
}

// quotaHistory is the number of values that a bucket of quotas keeps of each key: the most that a bucket allows. A
// gateway decides with the sums as of its own write, so a value that another write replaces must still reach the
// gateway, however late it reads. Each write waits until its writer has read it back, so only a gateway that is 64
// round trips late falls 64 values behind.
const quotaHistory = 64

// quota keeps the holdings of resources that have a limit and that one service counts. The return of a holding removes
// all values of its key with a roll-up.
func (t Topology) quota(name string) jetstream.StreamConfig {
	s := t.bucket(name, "holdings of quotas", 0, t.beside(openPart, quotaMinBytes))
	s.MaxMsgsPerSubject, s.SubjectDeleteMarkerTTL = quotaHistory, quotaMarkers
	s.AllowRollup, s.AllowMsgTTL, s.DenyPurge = true, true, false
	return s
}
