package event

// Type is the canonical type of an event: dotted, lower case, neutral between dialects.
type Type string

// The canonical types.
const (
	SessionCreated Type = "session.created"
	SessionClosed  Type = "session.closed"

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

	TurnStarted    Type = "turn.started"
	AttemptRefused Type = "attempt.refused"

	ToolCalled    Type = "tool.called"
	ToolStarted   Type = "tool.started"
	ToolCompleted Type = "tool.completed"
	ToolFailed    Type = "tool.failed"
	ToolUnknown   Type = "tool.unknown"

	UsageRecorded Type = "usage.recorded"
	Notice        Type = "notice"
)

// Terminal reports whether an event of this type ends a run.
func (t Type) Terminal() bool {
	return t == RunCompleted || t == RunFailed || t == RunCancelled
}

// Data is implemented by the data struct of every canonical type.
type Data interface{ EventType() Type }
