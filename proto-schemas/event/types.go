package event

// Type is the canonical type of an event: dotted, lower case, neutral between dialects.
type Type string

// The canonical types.
const (
	SessionCreated Type = "session.created"
	SessionClosed  Type = "session.closed"
	SessionDeleted Type = "session.deleted"

	MessageReceived  Type = "message.received"
	MessageRefused   Type = "message.refused"
	MessageStarted   Type = "message.started"
	MessageDelta     Type = "message.delta"
	MessageCompleted Type = "message.completed"
	MessageDiscarded Type = "message.discarded"

	RunStarted   Type = "run.started"
	RunCompleted Type = "run.completed"
	RunFailed    Type = "run.failed"
	RunCancelled Type = "run.cancelled"

	JobStarted     Type = "job.started"
	AttemptRefused Type = "attempt.refused"

	ToolCalled    Type = "tool.called"
	ToolStarted   Type = "tool.started"
	ToolCompleted Type = "tool.completed"
	ToolFailed    Type = "tool.failed"
	ToolUnknown   Type = "tool.unknown"

	UsageRecorded Type = "usage.recorded"
	Notice        Type = "notice"
)

// The canonical types of pipeline runs: plan, confirm, solve, aggregate.
const (
	SessionPaused   Type = "session.paused"
	SessionRestored Type = "session.restored"

	PlanStarted   Type = "plan.started"
	PlanCompleted Type = "plan.completed"
	PlanInvalid   Type = "plan.invalid"
	PlanCancelled Type = "plan.cancelled"

	InputRequested Type = "input.requested"
	InputAnswered  Type = "input.answered"
	InputExpired   Type = "input.expired"

	StepStarted   Type = "step.started"
	StepCompleted Type = "step.completed"
	StepFailed    Type = "step.failed"
	StepCancelled Type = "step.cancelled"
	StepRestarted Type = "step.restarted"

	JobFailed      Type = "job.failed"
	RetryScheduled Type = "retry.scheduled"
	RequestFailed  Type = "request.failed"
	RunProgressed  Type = "run.progressed"

	AggregateStarted   Type = "aggregate.started"
	AggregateCompleted Type = "aggregate.completed"
	PipelineCompleted  Type = "pipeline.completed"
	Error              Type = "error"
)

// The canonical types of tasks that are given to agents of the swarm.
const (
	InboxCreated    Type = "inbox.created"
	InboxRegistered Type = "inbox.registered"
	InboxMessaged   Type = "inbox.messaged"
	TaskCreated     Type = "task.created"
	TaskQueued      Type = "task.queued"
	TaskAssigned    Type = "task.assigned"
	TaskReported    Type = "task.reported"
	TaskNotified    Type = "task.notified"
	TaskMessaged    Type = "task.messaged"
	TaskReleased    Type = "task.released"
	TaskRefused     Type = "task.refused"
	TaskDeleted     Type = "task.deleted"
	TaskAsked       Type = "task.asked"
	TaskAskExpired  Type = "task.ask_expired"
	TaskFinished    Type = "task.finished"
	ChildCreated    Type = "child.created"
	ChildFinished   Type = "child.finished"
	CallStarted     Type = "call.started"
	CallNotified    Type = "call.notified"
	CallFinished    Type = "call.finished"
)

// The canonical types of agent teams.
const (
	MemberCreated      Type = "member.created"
	MemberClosed       Type = "member.closed"
	JobSuspended       Type = "job.suspended"
	TodosUpdated       Type = "todos.updated"
	ArtifactPersisted  Type = "artifact.persisted"
	ArtifactUpdated    Type = "artifact.updated"
	TeamCreated        Type = "team.created"
	TeamMemberStarted  Type = "team.member_started"
	TeamStatus         Type = "team.status"
	TeamMessage        Type = "team.message"
	TeamMessageDropped Type = "team.message_dropped"
	TeamMemberEvent    Type = "team.member_event"
	TeamSubTeamEvent   Type = "team.sub_team_event"
	TeamStopped        Type = "team.stopped"
	TeamPauseBegun     Type = "team.paused"
	TeamResumed        Type = "team.resumed"
	TeamClosing        Type = "team.closing"
	TeamClosed         Type = "team.closed"
	BoardCreated       Type = "board.created"
	BoardUpdated       Type = "board.updated"
)

// The types of direct messages: answers to one connection, without a log and a sequence.
const (
	StateExported  Type = "state.exported"
	CommandRefused Type = "command.refused"
	CallRequested  Type = "call.requested"
	TeamActed      Type = "team.acted"
)

// Terminal reports whether an event of this type ends a run.
func (t Type) Terminal() bool {
	return t == RunCompleted || t == RunFailed || t == RunCancelled
}

// Data is implemented by the data struct of every canonical type.
type Data interface{ EventType() Type }

// Tombstone reports whether an event of the type deletes its log: the events before it
// are removed, and no event follows it.
func (t Type) Tombstone() bool { return t == SessionDeleted || t == TaskDeleted }

// ProviderError is the error of a model's provider, or of the network before it, for a failed request: text for
// operators, bounded and without keys. Clients never see it.
type ProviderError struct {
	Status    int    `json:"status,omitempty"`     // of the HTTP answer, or the one that an error in a stream stands for
	Code      string `json:"code,omitempty"`       // the provider's name of the error
	RequestID string `json:"request_id,omitempty"` // under which the provider finds the request
	Message   string `json:"message,omitempty"`
}

// ObjectRef names data that is stored as an object, because it does not fit into an event. The tenant is that of the
// log with the reference: a reference cannot name data of another tenant.
type ObjectRef struct {
	Log    string `json:"log"`    // kind.id: the log that the object belongs to
	Digest string `json:"digest"` // SHA-256 of the data, in hex
	Size   int64  `json:"size"`   // of the data in bytes
}
