package permission

import (
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
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

// eventStreams returns the names of all shards of the event log.
func (g *grant) eventStreams() []string {
	var out []string
	for _, p := range g.partitions.All() {
		out = append(out, p.EventStream())
	}
	return out
}

// allStreams returns the names of all streams, those of buckets included.
func (g *grant) allStreams() []string {
	out := append(g.eventStreams(), subject.StreamCommands, subject.StreamDead, subject.StreamAudit, subject.StreamPayloads, subject.StreamIndex,
		bucket(subject.BucketDirectory), bucket(subject.BucketAcks), bucket(subject.BucketRegistry), bucket(subject.BucketFolds))
	for _, b := range subject.QuotaBuckets() {
		out = append(out, bucket(b))
	}
	return append(out, subject.TimerStreams()...)
}

// uses lets the role read the settings and the size of streams.
func (g *grant) uses(streams ...string) {
	for _, s := range streams {
		g.streams = append(g.streams, s)
		g.publish(api + "STREAM.INFO." + s)
	}
}

// surveys lets the role measure queues and streams. It sees numbers, but no contents.
func (g *grant) surveys() {
	g.uses(g.allStreams()...)
	g.publish(api + "CONSUMER.LIST." + subject.StreamCommands)
}

// consumes lets the role create one durable consumer, pull from it and acknowledge. The filter is part of the
// subject, and the server enforces it.
func (g *grant) consumes(stream, durable, filter string) {
	g.uses(stream)
	g.publish(
		api+"CONSUMER.CREATE."+stream+"."+durable+"."+filter,
		api+"CONSUMER.INFO."+stream+"."+durable,
		api+"CONSUMER.MSG.NEXT."+stream+"."+durable,
		"$JS.ACK."+stream+"."+durable+".>",
	)
}

// watches lets the role follow a whole bucket, with consumers of random names, which the server removes. The role may
// not delete or look at a consumer: the permission could not be limited to the role's own ones.
func (g *grant) watches(name string) {
	s := bucket(name)
	g.uses(s)
	g.publish(
		api+"CONSUMER.CREATE."+s+".*."+key(name, ">"),
		"$JS.FC."+s+".>",
	)
}

// watchesSome lets the role follow several patterns of a bucket at once: the subject of a consumer with several
// filters does not name them.
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

// folds lets the role keep the snapshots of logs of some kinds. Only roles that write these logs may: a forged snapshot lets its
// readers believe as much as forged events would.
func (g *grant) folds(kinds ...id.Kind) {
	for _, k := range kinds {
		g.keeps(subject.BucketFolds, subject.FoldKeys(k), subject.FoldParts(k))
	}
}

// loads lets the role read payloads.
func (g *grant) loads() {
	g.uses(subject.StreamPayloads)
	g.publish(api + "STREAM.MSG.GET." + subject.StreamPayloads)
}

// stores lets the role store payloads. It may describe an existing object anew, but not remove one.
func (g *grant) stores() {
	g.loads()
	g.publish(subject.PayloadChunks, subject.PayloadMetas)
}

// listsObjects lets the role find the objects of a log by their names, to delete them.
func (g *grant) listsObjects() {
	s := subject.StreamPayloads
	g.publish(
		api+"CONSUMER.CREATE."+s+".*."+subject.PayloadMetas,
		"$JS.FC."+s+".>",
	)
}

// reads lets the role read logs, and receive announcements of some kinds. The subject of a read does not name the
// log, so a role that reads some kinds could read all.
func (g *grant) reads(kinds ...id.Kind) {
	for _, s := range g.eventStreams() {
		g.publish(api+"DIRECT.GET."+s, api+"STREAM.MSG.GET."+s)
	}
	g.uses(g.eventStreams()...)
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

// indexes lets the role write the summaries and questions of the logs of a kind, and read the headers of these logs from a
// position on.
func (g *grant) indexes(k id.Kind) {
	g.uses(subject.StreamIndex)
	g.publish(subject.IndexOf(k), subject.QuestionsOf(k), subject.IndexPosition(k), api+"DIRECT.GET."+subject.StreamIndex)
	for _, p := range g.partitions.All() {
		s := p.EventStream()
		g.publish(api+"CONSUMER.CREATE."+s+".*."+p.KindFilter(k), "$JS.FC."+s+".>")
	}
}

// erases lets the role remove messages of streams. The server does not check which ones: the filter is in the
// request's body. So only one role has it, and its code names the log.
func (g *grant) erases(streams ...string) {
	for _, s := range streams {
		g.publish(api + "STREAM.PURGE." + s)
	}
}

// handles lets the role handle the commands of a service in order, and its timers.
func (g *grant) handles(services ...id.Name) {
	for _, s := range services {
		for _, p := range g.partitions.All() {
			g.consumes(subject.StreamCommands, s.String()+"-"+p.String(), subject.CommandFilter(s, p))
			g.subscribe(subject.CommandFilter(s, p)) // hints that wake a resting partition
		}
		g.consumes(subject.TimerStream(s), s.String(), subject.TimerFilter(s))
		g.publish(subject.TimersOf(s), subject.DeadOf(s))
	}
}

// works lets the role handle commands of a service that all replicas share.
func (g *grant) works(service id.Name) {
	g.consumes(subject.StreamCommands, service.String(), subject.CommandFilterAll(service))
	g.publish(subject.DeadOf(service))
}

// resends lets the role return commands that it has given up to the queue of its service, when the gateway asks for it:
// those of services only. The gateway sends those of clients again itself. A service needs nothing but a command to itself
// to do what it may do anyway.
func (g *grant) resends(service id.Name, verbs ...id.Name) {
	g.publish(api + "DIRECT.GET." + subject.StreamDead)
	g.sends(service, verbs...)
	g.subscribe(subject.RPC(cmd.Letters, service))
	g.found(cmd.Letters)
	g.answers(Gateway, Operator)
}

// discards lets the role remove single dead letters. The server does not check which ones: see erases.
func (g *grant) discards() {
	g.uses(subject.StreamDead)
	g.publish(api + "STREAM.MSG.DELETE." + subject.StreamDead)
}

// inspects lets the role read the audit log, and how much of their quotas all principals use.
func (g *grant) inspects() {
	g.publish(api + "DIRECT.GET." + subject.StreamAudit)
	for _, b := range subject.QuotaBuckets() {
		g.publish(api + "DIRECT.GET." + bucket(b))
	}
}

// counts lets the role count principals' use of a resource, and read the counts of others.
func (g *grant) counts(resources ...id.Name) {
	for _, r := range resources {
		s, keys := bucket(subject.QuotaBucket(r)), key(subject.QuotaBucket(r), subject.QuotaKeys(r))
		g.uses(s)
		g.publish(keys, api+"CONSUMER.CREATE."+s+".*."+keys, "$JS.FC."+s+".>")
	}
}

// audits lets the role write records of some actions, and the number of records that it dropped.
func (g *grant) audits(actions ...id.Name) {
	g.uses(subject.StreamAudit)
	for _, a := range append(actions, audit.Lost) {
		g.publish(subject.AuditActions(a))
	}
}

// replaces lets the role move the messages of the streams of earlier versions, and remove those streams.
func (g *grant) replaces() {
	for _, s := range subject.RetiredStreams() {
		g.publish(api+"STREAM.INFO."+s, api+"STREAM.UPDATE."+s, api+"STREAM.DELETE."+s, api+"STREAM.MSG.GET."+s, api+"DIRECT.GET."+s,
			api+"STREAM.RESTORE."+s, "$JS.SNAPSHOT.RESTORE."+s+".>")
	}
	for _, s := range subject.TimerServices() {
		g.publish(subject.TimersOf(s))
	}
	for _, r := range audit.Held {
		g.publish(key(subject.QuotaBucket(r), subject.QuotaKeys(r)))
	}
}
