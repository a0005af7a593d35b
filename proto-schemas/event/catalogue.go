package event

// EventType implements Data.
func (SessionCreatedData) EventType() Type { return SessionCreated }

// EventType implements Data.
func (SessionClosedData) EventType() Type { return SessionClosed }

// EventType implements Data.
func (MessageReceivedData) EventType() Type { return MessageReceived }

// EventType implements Data.
func (MessageRefusedData) EventType() Type { return MessageRefused }

// EventType implements Data.
func (MessageStartedData) EventType() Type { return MessageStarted }

// EventType implements Data.
func (MessageDeltaData) EventType() Type { return MessageDelta }

// EventType implements Data.
func (MessageCompletedData) EventType() Type { return MessageCompleted }

// EventType implements Data.
func (MessageDiscardedData) EventType() Type { return MessageDiscarded }

// EventType implements Data.
func (RunStartedData) EventType() Type { return RunStarted }

// EventType implements Data.
func (RunCompletedData) EventType() Type { return RunCompleted }

// EventType implements Data.
func (RunFailedData) EventType() Type { return RunFailed }

// EventType implements Data.
func (RunCancelledData) EventType() Type { return RunCancelled }

// EventType implements Data.
func (TurnStartedData) EventType() Type { return TurnStarted }

// EventType implements Data.
func (AttemptRefusedData) EventType() Type { return AttemptRefused }

// EventType implements Data.
func (ToolCalledData) EventType() Type { return ToolCalled }

// EventType implements Data.
func (ToolStartedData) EventType() Type { return ToolStarted }

// EventType implements Data.
func (ToolCompletedData) EventType() Type { return ToolCompleted }

// EventType implements Data.
func (ToolFailedData) EventType() Type { return ToolFailed }

// EventType implements Data.
func (ToolUnknownData) EventType() Type { return ToolUnknown }

// EventType implements Data.
func (UsageRecordedData) EventType() Type { return UsageRecorded }

// EventType implements Data.
func (NoticeData) EventType() Type { return Notice }

// Info describes one canonical type for documentation, schemas and checks.
type Info struct {
	Type    Type
	Data    Data // the zero value of its data struct
	Meaning string
}

// Catalogue lists every canonical type.
var Catalogue = []Info{
	{SessionCreated, SessionCreatedData{}, "a session exists"},
	{SessionClosed, SessionClosedData{}, "a session takes no more messages"},
	{MessageReceived, MessageReceivedData{}, "a user's message was accepted"},
	{MessageRefused, MessageRefusedData{}, "a user's message was not accepted"},
	{MessageStarted, MessageStartedData{}, "the model began a message"},
	{MessageDelta, MessageDeltaData{}, "the next piece of a message's text"},
	{MessageCompleted, MessageCompletedData{}, "a message is whole"},
	{MessageDiscarded, MessageDiscardedData{}, "a message that had begun does not count"},
	{RunStarted, RunStartedData{}, "the run that answers a message began"},
	{RunCompleted, RunCompletedData{}, "the run has its answer (terminal)"},
	{RunFailed, RunFailedData{}, "the run ended in an error (terminal)"},
	{RunCancelled, RunCancelledData{}, "the run was stopped (terminal)"},
	{TurnStarted, TurnStartedData{}, "a worker claimed the run"},
	{AttemptRefused, AttemptRefusedData{}, "a worker that lost its claim was turned away"},
	{ToolCalled, ToolCalledData{}, "intent to call a tool"},
	{ToolStarted, ToolStartedData{}, "the call was handed to the tool"},
	{ToolCompleted, ToolCompletedData{}, "the tool's result"},
	{ToolFailed, ToolFailedData{}, "the tool call failed"},
	{ToolUnknown, ToolUnknownData{}, "the outcome of a tool call is unknown"},
	{UsageRecorded, UsageRecordedData{}, "what a model call consumed"},
	{Notice, NoticeData{}, "something people should know"},
}
