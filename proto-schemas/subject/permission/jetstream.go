package permission

import (
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Subjects of NATS itself.
const (
	api = "$JS.API."
	// leaders tells readers of logs that a stream has a new leader.
	leaders = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.*"
)

// bucket names the stream behind a bucket.
func bucket(name string) string { return subject.BucketStream(name) }

// key returns the subject of the keys of a bucket that match the pattern.
func key(name, pattern string) string { return subject.BucketSubject(name, pattern) }

// eventStreams returns the names of all shards of the event log.
func eventStreams() []string {
	var out []string
	for _, p := range subject.AllPartitions() {
		out = append(out, p.EventStream())
	}
	return out
}

// allStreams returns the names of all streams, those of buckets included.
func allStreams() []string {
	return append(eventStreams(), subject.StreamCommands, subject.StreamTimers, subject.StreamDead, subject.StreamAudit, subject.StreamPayloads,
		bucket(subject.BucketDirectory), bucket(subject.BucketAcks), bucket(subject.BucketRegistry), bucket(subject.BucketQuota), bucket(subject.BucketFolds))
}

// uses lets the role look at the settings and the size of streams.
func (g *grant) uses(streams ...string) {
	for _, s := range streams {
		g.streams = append(g.streams, s)
		g.publish(api + "STREAM.INFO." + s)
	}
}

// surveys lets the role measure how long the queues are and how the streams stand. It
// sees numbers, and nothing of what is in them.
func (g *grant) surveys() {
	g.uses(allStreams()...)
	g.publish(api + "CONSUMER.LIST." + subject.StreamCommands)
}

// consumes lets the role make one durable consumer, take from it and acknowledge. The
// filter is part of the subject, and the server holds the request to it.
func (g *grant) consumes(stream, durable, filter string) {
	g.uses(stream)
	g.publish(
		api+"CONSUMER.CREATE."+stream+"."+durable+"."+filter,
		api+"CONSUMER.INFO."+stream+"."+durable,
		api+"CONSUMER.MSG.NEXT."+stream+"."+durable,
		"$JS.ACK."+stream+"."+durable+".>",
	)
}

// watches lets the role follow a whole bucket, with consumers that the server forgets.
func (g *grant) watches(name string) {
	s := bucket(name)
	g.uses(s)
	g.publish(
		api+"CONSUMER.CREATE."+s+".*."+key(name, ">"),
		api+"CONSUMER.INFO."+s+".*",
		api+"CONSUMER.DELETE."+s+".*",
		"$JS.FC."+s+".>",
	)
}

// watchesSome lets the role follow several patterns of a bucket at once: a consumer with
// several filters has none in its subject.
func (g *grant) watchesSome(name string) {
	g.watches(name)
	g.publish(api + "CONSUMER.CREATE." + bucket(name) + ".*")
}

// keeps lets the role read and write some keys of a bucket.
func (g *grant) keeps(name string, patterns ...string) {
	g.uses(bucket(name))
	for _, p := range patterns {
		g.publish(key(name, p), api+"DIRECT.GET."+bucket(name)+"."+key(name, p))
	}
}

// loads lets the role read data that is stored as objects.
func (g *grant) loads() {
	g.uses(subject.StreamPayloads)
	g.publish(api + "STREAM.MSG.GET." + subject.StreamPayloads)
}

// stores lets the role store such data, and take away what it has stored in part. Who may
// replace an object can do that anyhow.
func (g *grant) stores() {
	g.loads()
	g.publish(subject.PayloadChunks, subject.PayloadMetas, api+"STREAM.PURGE."+subject.StreamPayloads)
}

// listsObjects lets the role find the objects of a log by their names, to delete them.
func (g *grant) listsObjects() {
	s := subject.StreamPayloads
	g.publish(
		api+"CONSUMER.CREATE."+s+".*."+subject.PayloadMetas,
		api+"CONSUMER.INFO."+s+".*",
		api+"CONSUMER.DELETE."+s+".*",
		"$JS.FC."+s+".>",
	)
}

// reads lets the role read logs, and hear of new events of some kinds. Which logs of a
// shard are read cannot be told by the subject: who reads some kinds could read all.
func (g *grant) reads(kinds ...id.Kind) {
	for _, s := range eventStreams() {
		g.publish(api+"DIRECT.GET."+s, api+"STREAM.MSG.GET."+s)
	}
	g.uses(eventStreams()...)
	g.subscribe(leaders)
	for _, k := range kinds {
		g.subscribe(subject.LiveOf(k))
	}
}

// writes lets the role append to the logs of some kinds, and announce.
func (g *grant) writes(kinds ...id.Kind) {
	g.reads(kinds...)
	for _, k := range kinds {
		g.publish(subject.EventsOf(k), subject.LiveOf(k))
	}
}

// erases lets the role remove messages of streams. The server does not look at which:
// the filter is in the request's body. So one role has it, and its code names the log.
func (g *grant) erases(streams ...string) {
	for _, s := range streams {
		g.publish(api + "STREAM.PURGE." + s)
	}
}

// handles lets the role take the commands of a service in order, and its timers.
func (g *grant) handles(services ...id.Name) {
	for _, s := range services {
		for _, p := range subject.AllPartitions() {
			g.consumes(subject.StreamCommands, s.String()+"-"+p.String(), subject.CommandFilter(s, p))
			g.subscribe(subject.CommandFilter(s, p)) // hints that wake a partition that rests
		}
		g.consumes(subject.StreamTimers, s.String(), subject.TimerFilter(s))
		g.publish(subject.TimersOf(s), subject.DeadOf(s))
	}
}

// works lets the role take commands of a service that all its replicas share.
func (g *grant) works(service id.Name) {
	g.consumes(subject.StreamCommands, service.String(), subject.CommandFilterAll(service))
	g.publish(subject.DeadOf(service))
}

// counts lets the role count what principals have of a resource, and see what others
// count of it.
func (g *grant) counts(resources ...id.Name) {
	s := bucket(subject.BucketQuota)
	g.uses(s)
	g.publish(api+"CONSUMER.INFO."+s+".*", api+"CONSUMER.DELETE."+s+".*", "$JS.FC."+s+".>")
	for _, r := range resources {
		keys := key(subject.BucketQuota, subject.QuotaKeys(r))
		g.publish(keys, api+"CONSUMER.CREATE."+s+".*."+keys)
	}
}

// audits lets the role write records of some actions, and say how many it had to drop.
func (g *grant) audits(actions ...id.Name) {
	g.uses(subject.StreamAudit)
	for _, a := range append(actions, audit.Lost) {
		g.publish(subject.AuditActions(a))
	}
}
