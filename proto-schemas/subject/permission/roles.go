package permission

import (
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Names that services have and the contract does not mention.
var (
	whatService = id.MustName("service")   // directory.WhatService
	gateways    = id.MustName("gateway")   // the gateway's replicas in the directory
	tools       = id.MustName("tools")     // the tool service
	taskCalls   = id.MustName("task-call") // tool calls of tasks, among the task service's replicas
	runCall     = id.MustName("run")       // the one verb of task-call
	teams       = id.MustName("team")      // teams in the registry
	active      = id.MustName("team-active")
)

type role struct {
	role Role
	does string
	may  func(*grant)
}

func (r role) list() List {
	var g grant
	g.subscribe(Inbox(r.role) + ".>")
	r.may(&g)
	return List{Role: r.role, Does: r.does, Publish: sorted(g.pub), Subscribe: sorted(g.sub), Streams: sorted(g.streams)}
}

var table = []role{
	{Gateway, "carries what clients say to services, and what happens to clients", gateway},
	{Session, "opens, resumes, exports and ends sessions", session},
	{Pipeline, "plans and carries out runs", pipeline},
	{Agent, "does units of work with the model", agent},
	{Task, "routes the tasks of the swarm", task},
	{Tools, "runs tools; cannot read a log", toolbox},
	{Team, "runs teams and their members", team},
	{Bootstrap, "makes streams and buckets, and restores backups, whose open work it wakes; reads nothing", bootstrap},
	{Operator, "looks at everything, changes nothing", operator},
	{Monitor, "hears what happens, says nothing", monitor},
}

// gateway may send what clients may ask for, and nothing that services tell each other.
// It is ready only if all streams are, so it looks at all of them.
func gateway(g *grant) {
	g.uses(allStreams()...)
	g.reads(id.KindSession, id.KindTask, id.KindAgent, id.KindTeam, id.KindClient)
	g.joins(gateways)
	g.lists(cmd.WhatAgent, cmd.WhatService, cmd.WhatClient)
	g.hears()
	g.answers(Task, Team, Tools)
	g.asks(cmd.Session, cmd.Task, cmd.Team)
	g.counts(audit.Connections)
	g.audits(audit.Actions...)
	g.sends(cmd.Session, cmd.Open, cmd.Ack)
	g.sends(cmd.Pipeline, cmd.Message, cmd.Cancel, cmd.Respond, cmd.CancelTask, cmd.RestartTask, cmd.CancelPlan, cmd.Replan)
	g.sends(cmd.Task, cmd.MessageTask, cmd.CancelSwarm, cmd.ReportTask, cmd.NotifyTask, cmd.AskTask, cmd.ResultTask,
		cmd.SpawnTask, cmd.CallTool, cmd.AckClient)
	g.sends(cmd.Team, cmd.Message, cmd.Cancel, cmd.Respond, cmd.PauseTeam, cmd.ResumeTeam, cmd.CloseTeam)
}

func session(g *grant) {
	g.writes(id.KindSession)
	g.handles(cmd.Session)
	g.joins(cmd.Session)
	g.serves(cmd.Session, Gateway)
	g.tells()
	g.keeps(subject.BucketAcks, subject.AckKeys(id.KindSession))
	g.counts(audit.Sessions)
	g.audits(audit.QuotaRefused)
	g.sends(cmd.Session, cmd.Expire)
	g.sends(cmd.Pipeline, cmd.Resume)
	g.surveys()
}

func pipeline(g *grant) {
	g.writes(id.KindSession)
	g.handles(cmd.Pipeline)
	g.joins(cmd.Pipeline)
	g.tells()
	g.sends(cmd.Pipeline, cmd.Due)
	g.sends(cmd.Agent, cmd.Run)
	g.sends(cmd.Task, cmd.CreateTask, cmd.CancelSwarm)
}

// agent is a worker, and the assistant of the swarm, which has sessions of its own.
func agent(g *grant) {
	g.writes(id.KindSession, id.KindAgent)
	g.reads(id.KindTask)
	g.works(cmd.Agent)
	g.joins(cmd.Agent)
	g.lists(cmd.WhatAgent)
	g.hears()
	g.answers(Task, Team)
	g.asks(tools)
	g.counts(audit.Tokens, audit.CostUSD, audit.ToolCalls, audit.Time)
	g.audits(audit.QuotaRefused)
	g.sends(cmd.Pipeline, cmd.TurnEnded, cmd.WorkDead, cmd.Message, cmd.Cancel)
	g.sends(cmd.Member, cmd.TurnEnded, cmd.WorkDead)
	g.sends(cmd.Agent, cmd.Run) // what another worker has to do
	g.sends(cmd.Team, cmd.ActTeam)
	g.sends(cmd.Session, cmd.Open, cmd.Close)
	g.sends(cmd.Task, cmd.ReportTask, cmd.ResultTask, cmd.NotifyTask, cmd.ReleaseTask)
}

func task(g *grant) {
	g.writes(id.KindTask, id.KindClient)
	g.handles(cmd.Task)
	g.works(taskCalls)
	g.joins(cmd.Task)
	g.serves(cmd.Task, Gateway)
	g.tells()
	g.asks(tools)
	g.keeps(subject.BucketAcks, subject.AckKeys(id.KindTask), subject.AckKeys(id.KindClient))
	g.counts(audit.Tasks)
	g.audits(audit.QuotaRefused)
	g.watches(subject.BucketRegistry)
	g.keeps(subject.BucketRegistry, subject.RegistryKeys(cmd.WhatAgent), subject.RegistryKeys(cmd.WhatService), subject.RegistryKeys(cmd.WhatClient))
	g.sends(cmd.Task, cmd.CreateTask, cmd.CancelSwarm, cmd.ReportTask, cmd.ReleaseTask, cmd.ChildEnded,
		cmd.CallNotified, cmd.CallEnded, cmd.TaskDue, cmd.TellClient)
	g.sends(taskCalls, runCall)
	g.sends(cmd.Pipeline, cmd.WorkTaken, cmd.WorkDone)
}

// toolbox runs code that others have written: it sees the calls that it is given, and
// the directory, where services of the swarm are.
func toolbox(g *grant) {
	g.joins(tools)
	g.serves(tools, Agent, Task, Team)
	g.tells()
}

func team(g *grant) {
	g.writes(id.KindTeam, id.KindAgent)
	g.handles(cmd.Team, cmd.Member)
	g.joins(cmd.Team, cmd.Member)
	g.serves(cmd.Team, Gateway, Team)
	g.tells()
	g.asks(tools, cmd.Team) // replicas ask each other whether they live
	g.sends(cmd.Agent, cmd.Run)
	g.counts(audit.Teams)
	g.audits(audit.QuotaRefused)
	g.watchesSome(subject.BucketRegistry)
	g.keeps(subject.BucketRegistry, subject.RegistryKeys(teams), subject.RegistryKeys(active))
	g.keeps(subject.BucketFolds, subject.FoldKeys(id.KindTeam))
	g.sends(cmd.Team, cmd.CreateTeam, cmd.Message, cmd.Cancel, cmd.Respond, cmd.PauseTeam, cmd.ResumeTeam, cmd.CloseTeam,
		cmd.ActTeam, cmd.WakeTeam, cmd.TeamDue)
	g.sends(cmd.Member, cmd.CreateMember, cmd.NoteTodos, cmd.CloseMember, cmd.Message, cmd.Cancel, cmd.Respond, cmd.Due, cmd.Resume)
}

func bootstrap(g *grant) {
	g.uses(allStreams()...)
	for _, s := range allStreams() {
		g.publish(api+"STREAM.CREATE."+s, api+"STREAM.UPDATE."+s, api+"STREAM.RESTORE."+s, "$JS.SNAPSHOT.RESTORE."+s+".>")
	}
	g.publish(api + "INFO")
	// What a backup was taken in the middle of goes on.
	g.sends(cmd.Session, cmd.Expire)
	g.sends(cmd.Pipeline, cmd.Resume)
	g.sends(cmd.Member, cmd.Resume)
	g.sends(cmd.Task, cmd.TaskDue)
	g.sends(cmd.Team, cmd.WakeTeam)
}

// operator may read every stream, and take backups, which are reading too.
func operator(g *grant) {
	g.reads(id.KindSession, id.KindTask, id.KindAgent, id.KindTeam, id.KindClient)
	g.uses(allStreams()...)
	g.follows()
	g.subscribe(subject.LiveEverything)
	g.publish(api+"INFO", api+"STREAM.NAMES", api+"STREAM.LIST", "$SRV.>")
	for _, s := range allStreams() {
		g.publish(
			api+"STREAM.MSG.GET."+s, api+"DIRECT.GET."+s, api+"DIRECT.GET."+s+".>",
			api+"CONSUMER.NAMES."+s, api+"CONSUMER.LIST."+s, api+"CONSUMER.INFO."+s+".*",
			api+"STREAM.SNAPSHOT."+s, "$JS.SNAPSHOT.ACK."+s+".>",
		)
	}
}

func monitor(g *grant) { g.subscribe(subject.LiveEverything) }
