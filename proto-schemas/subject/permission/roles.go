package permission

import (
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Names of services that the contract does not mention.
var (
	whatService = id.MustName("service")   // directory.WhatService
	tools       = id.MustName("tools")     // the tool service
	taskCalls   = id.MustName("task-call") // tool calls of tasks, among the task service's replicas
	runCall     = id.MustName("run")       // verbs of task-call
	runOutside  = id.MustName("run-outside")
	teams       = id.MustName("team") // teams in the registry
	active      = id.MustName("team-active")
)

type role struct {
	role Role
	does string
	may  func(*grant)
}

func (r role) list(n subject.Partitions) List {
	g := grant{partitions: n}
	g.subscribe(Inbox(r.role) + ".>")
	r.may(&g)
	return List{Role: r.role, Does: r.does, Publish: sorted(g.pub), Subscribe: sorted(g.sub), Streams: sorted(g.streams)}
}

var table = []role{
	{Gateway, "sends requests of clients to services, and events to clients", gateway},
	{Session, "opens, resumes, exports, ends and deletes sessions; alone may remove events", session},
	{Pipeline, "plans and carries out runs", pipeline},
	{Worker, "does jobs with the model", worker},
	{Task, "routes the tasks of the swarm", task},
	{Tools, "runs tools; cannot read a log", toolbox},
	{Team, "runs teams and their members", team},
	{Bootstrap, "creates streams and buckets, and restores backups, whose open work it resumes; reads no data", bootstrap},
	{Retention, "changes the limits of the audit log, and nothing else; keep its key offline", retention},
	{Operator, "reads everything, changes nothing", operator},
	{Monitor, "reads events, publishes nothing", monitor},
}

// gateway may send the commands that clients may request, but none between services. It is ready only if all streams
// exist, so it reads all of them.
func gateway(g *grant) {
	g.uses(g.allStreams()...)
	g.reads(id.KindSession, id.KindTask, id.KindMember, id.KindTeam, id.KindInbox, id.KindCall)
	g.stores()
	g.joins(cmd.Gateways)
	g.lists(cmd.WhatAgent, cmd.WhatService, cmd.WhatClient)
	g.hears()
	g.answers(Task, Team, Tools)
	g.asks(cmd.Session, cmd.Task, cmd.Team, cmd.Installation, cmd.Letters)
	g.publish(subject.RPC(cmd.Worker, cmd.PingWorker), subject.RPC(cmd.Worker, cmd.TryModel), subject.RPC(cmd.Process, cmd.ListRates))
	g.publish(subject.RPC(cmd.Gateways, cmd.ListConnections))
	g.subscribe(subject.RPC(cmd.Gateways, cmd.ListConnections))
	g.publish(api + "DIRECT.GET." + subject.StreamIndex)
	g.counts(audit.Connections)
	g.audits(audit.Actions...)
	g.sends(cmd.Session, cmd.Open, cmd.Ack, cmd.Close, cmd.Delete)
	g.sends(cmd.Pipeline, cmd.SendMessage, cmd.Cancel, cmd.Answer, cmd.CancelStep, cmd.RestartStep, cmd.CancelPlan, cmd.Replan)
	g.sends(cmd.Task, cmd.MessageTask, cmd.CancelTask, cmd.ReportTask, cmd.NotifyTask, cmd.AskTask, cmd.FinishTask,
		cmd.SpawnTask, cmd.CallTool, cmd.AckClient)
	g.sends(cmd.Team, cmd.SendMessage, cmd.Cancel, cmd.Answer, cmd.PauseTeam, cmd.ResumeTeam, cmd.CloseTeam)
}

func session(g *grant) {
	g.writes(id.KindSession)
	g.folds(id.KindSession)
	g.handles(cmd.Session)
	g.resends(cmd.Session, cmd.Expire, cmd.Close, cmd.EraseTask)
	g.joins(cmd.Session)
	g.serves(cmd.Session, Gateway)
	g.serves(cmd.Installation, Gateway)
	g.discards()
	g.inspects()
	g.tells()
	g.keeps(subject.BucketAcks, subject.AckKeys(id.KindSession))
	g.counts(audit.Sessions)
	g.audits(audit.QuotaRefused, audit.Deleted, audit.Command, audit.Decided)
	g.sends(cmd.Session, cmd.Expire)
	g.sends(cmd.Task, cmd.CancelTask, cmd.DeleteTask)
	g.sends(cmd.Pipeline, cmd.Resume)
	g.surveys()
	g.stores()
	g.listsObjects()
	g.erases(g.eventStreams()...)
	for _, s := range []id.Name{cmd.Session, cmd.Pipeline, cmd.Task} {
		g.erases(subject.TimerStream(s))
	}
	g.erases(subject.StreamDead, subject.StreamPayloads, bucket(subject.BucketAcks), subject.StreamIndex)
	g.indexes(id.KindSession)
}

func pipeline(g *grant) {
	g.writes(id.KindSession)
	g.folds(id.KindSession)
	g.handles(cmd.Pipeline)
	g.resends(cmd.Pipeline, cmd.SettleJob, cmd.AbandonJob, cmd.AssignJob, cmd.FinishJob, cmd.AskPeople, cmd.CloseQuestion, cmd.CheckDeadlines, cmd.Resume)
	g.joins(cmd.Pipeline)
	g.tells()
	g.audits(audit.Command, audit.Decided, audit.ToolCalled)
	g.sends(cmd.Pipeline, cmd.CheckDeadlines)
	g.sends(cmd.Worker, cmd.DoJob)
	g.sends(cmd.Task, cmd.CreateTask, cmd.CancelTask, cmd.MessageTask)
}

// worker is a worker, and the assistant of the swarm, which has separate sessions.
func worker(g *grant) {
	g.writes(id.KindSession, id.KindMember)
	g.folds(id.KindSession, id.KindMember)
	g.reads(id.KindTask)
	g.stores()
	g.works(cmd.Worker)
	g.resends(cmd.Worker, cmd.DoJob)
	g.joins(cmd.Worker)
	g.lists(cmd.WhatAgent)
	g.hears()
	g.serves(cmd.Worker, Gateway)
	g.answers(Task, Team)
	g.asks(tools)
	g.counts(audit.Tokens, audit.CostUSD, audit.ToolCalls, audit.Time)
	g.audits(audit.QuotaRefused, audit.ToolCalled)
	g.sends(cmd.Pipeline, cmd.SettleJob, cmd.AbandonJob, cmd.SendMessage, cmd.Cancel)
	g.sends(cmd.Member, cmd.SettleJob, cmd.AbandonJob)
	g.sends(cmd.Worker, cmd.DoJob) // jobs for another worker
	g.sends(cmd.Team, cmd.ActTeam)
	g.sends(cmd.Session, cmd.Open, cmd.Close)
	g.sends(cmd.Task, cmd.ReportTask, cmd.FinishTask, cmd.NotifyTask, cmd.ReleaseTask)
}

func task(g *grant) {
	g.writes(id.KindTask, id.KindInbox, id.KindCall)
	g.stores()
	g.handles(cmd.Task)
	g.works(taskCalls)
	g.resends(cmd.Task, cmd.CreateTask, cmd.ReleaseTask, cmd.EndChild, cmd.NotifyCall, cmd.EndCall, cmd.CheckTask, cmd.TellClient, cmd.DeleteTask)
	g.resends(taskCalls, runCall, runOutside)
	g.joins(cmd.Task)
	g.serves(cmd.Task, Gateway)
	g.tells()
	g.asks(tools)
	g.keeps(subject.BucketAcks, subject.AckKeys(id.KindTask), subject.AckKeys(id.KindInbox))
	g.counts(audit.Tasks, audit.Children, audit.ToolCalls)
	g.audits(audit.QuotaRefused, audit.Command, audit.Decided)
	g.watches(subject.BucketRegistry)
	g.keeps(subject.BucketRegistry, subject.RegistryKeys(cmd.WhatAgent), subject.RegistryKeys(cmd.WhatService), subject.RegistryKeys(cmd.WhatClient))
	g.sends(cmd.Task, cmd.CreateTask, cmd.CancelTask, cmd.ReportTask, cmd.ReleaseTask, cmd.EndChild,
		cmd.NotifyCall, cmd.EndCall, cmd.CheckTask, cmd.TellClient, cmd.DeleteTask)
	g.sends(cmd.Session, cmd.Delete, cmd.EraseTask)
	g.sends(taskCalls, runCall, runOutside)
	g.sends(cmd.Pipeline, cmd.AssignJob, cmd.FinishJob, cmd.AskPeople, cmd.CloseQuestion)
	g.sends(cmd.Member, cmd.AssignJob, cmd.FinishJob, cmd.AskPeople, cmd.CloseQuestion)
	g.indexes(id.KindTask)
}

// toolbox runs code of others: it sees only its own calls, and the directory, which lists services of the swarm.
func toolbox(g *grant) {
	g.joins(tools)
	g.serves(tools, Worker, Task, Team)
	g.tells()
}

func team(g *grant) {
	g.writes(id.KindTeam, id.KindMember)
	g.handles(cmd.Team, cmd.Member)
	g.resends(cmd.Team, cmd.CreateTeam, cmd.ActTeam, cmd.WakeTeam, cmd.CheckTeam)
	g.resends(cmd.Member, cmd.CreateMember, cmd.NoteTodos, cmd.CloseMember, cmd.SendMessage, cmd.Cancel, cmd.Answer, cmd.CheckDeadlines,
		cmd.Resume, cmd.SettleJob, cmd.AbandonJob, cmd.AssignJob, cmd.FinishJob, cmd.AskPeople, cmd.CloseQuestion)
	g.joins(cmd.Team, cmd.Member)
	g.serves(cmd.Team, Gateway, Team)
	g.tells()
	g.asks(tools, cmd.Team) // replicas ask each other whether they are alive
	g.sends(cmd.Worker, cmd.DoJob)
	g.counts(audit.Teams)
	g.audits(audit.QuotaRefused, audit.Command, audit.Decided, audit.ToolCalled)
	g.watchesSome(subject.BucketRegistry)
	g.keeps(subject.BucketRegistry, subject.RegistryKeys(teams), subject.RegistryKeys(active))
	g.folds(id.KindTeam, id.KindMember)
	g.sends(cmd.Team, cmd.CreateTeam, cmd.SendMessage, cmd.Cancel, cmd.Answer, cmd.PauseTeam, cmd.ResumeTeam, cmd.CloseTeam,
		cmd.ActTeam, cmd.WakeTeam, cmd.CheckTeam)
	g.sends(cmd.Member, cmd.CreateMember, cmd.NoteTodos, cmd.CloseMember, cmd.SendMessage, cmd.Cancel, cmd.Answer, cmd.CheckDeadlines, cmd.Resume)
	g.sends(cmd.Task, cmd.CreateTask, cmd.CancelTask, cmd.MessageTask) // work of members that are agents of the swarm
	g.indexes(id.KindMember)
}

func bootstrap(g *grant) {
	g.uses(g.allStreams()...)
	for _, s := range g.allStreams() {
		g.publish(api+"STREAM.CREATE."+s, api+"STREAM.RESTORE."+s, "$JS.SNAPSHOT.RESTORE."+s+".>")
		if s != subject.StreamAudit {
			g.publish(api + "STREAM.UPDATE." + s)
		}
	}
	g.publish(api + "INFO")
	g.replaces()
	// Continue work that was in progress during the backup.
	g.sends(cmd.Session, cmd.Expire)
	g.sends(cmd.Pipeline, cmd.Resume)
	g.sends(cmd.Member, cmd.Resume)
	g.sends(cmd.Task, cmd.CheckTask)
	g.sends(cmd.Team, cmd.WakeTeam)
}

// retention may change the settings of the audit log. No other role may: a smaller limit removes records.
func retention(g *grant) {
	g.uses(subject.StreamAudit)
	g.publish(api + "STREAM.UPDATE." + subject.StreamAudit)
}

// operator may read every stream, and take backups, which only read.
func operator(g *grant) {
	g.reads(id.KindSession, id.KindTask, id.KindMember, id.KindTeam, id.KindInbox, id.KindCall)
	g.uses(g.allStreams()...)
	g.follows()
	g.subscribe(subject.LiveEverything)
	g.publish(api+"INFO", api+"STREAM.NAMES", api+"STREAM.LIST", "$SRV.>")
	for _, s := range g.allStreams() {
		g.publish(
			api+"STREAM.MSG.GET."+s, api+"DIRECT.GET."+s, api+"DIRECT.GET."+s+".>",
			api+"CONSUMER.NAMES."+s, api+"CONSUMER.LIST."+s, api+"CONSUMER.INFO."+s+".*",
			api+"STREAM.SNAPSHOT."+s, "$JS.SNAPSHOT.ACK."+s+".>",
		)
	}
}

func monitor(g *grant) { g.subscribe(subject.LiveEverything) }

// follows lets the role read the directory.
func (g *grant) follows() { g.watches(subject.BucketDirectory) }

// joins lets the role list its instances in the directory as replicas of services, and tell gateways what they have counted.
func (g *grant) joins(services ...id.Name) {
	g.follows()
	g.subscribe(subject.RPC(cmd.Process, cmd.ListRates))
	g.answers(Gateway)
	for _, s := range services {
		g.publish(key(subject.BucketDirectory, subject.DirectoryKeys(whatService, s)))
	}
}

// All returns the lists of all roles, always in the same order.
func All(n subject.Partitions) []List {
	out := make([]List, len(table))
	for i, r := range table {
		out[i] = r.list(n)
	}
	return out
}

// Of returns the list of a role, false for an unknown role.
func Of(role Role, n subject.Partitions) (List, bool) {
	for _, r := range table {
		if r.role == role {
			return r.list(n), true
		}
	}
	return List{}, false
}
