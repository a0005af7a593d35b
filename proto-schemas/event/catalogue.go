package event

import "slices"

// EventType implements Data.
func (SessionCreatedData) EventType() Type { return SessionCreated }

// EventType implements Data.
func (SessionClosedData) EventType() Type { return SessionClosed }

// EventType implements Data.
func (SessionDeletedData) EventType() Type { return SessionDeleted }

// EventType implements Data.
func (MessageReceivedData) EventType() Type { return MessageReceived }

// EventType implements Data.
func (MessageRefusedData) EventType() Type { return MessageRefused }

// EventType implements Data.
func (MessageStartedData) EventType() Type { return MessageStarted }

// EventType implements Data.
func (MessageDeltaData) EventType() Type { return MessageDelta }

// EventType implements Data.
func (ReasoningDeltaData) EventType() Type { return ReasoningDelta }

// EventType implements Data.
func (ReasoningCompletedData) EventType() Type { return ReasoningCompleted }

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
func (JobStartedData) EventType() Type { return JobStarted }

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

// EventType implements Data.
func (SessionPausedData) EventType() Type { return SessionPaused }

// EventType implements Data.
func (SessionRestoredData) EventType() Type { return SessionRestored }

// EventType implements Data.
func (PlanStartedData) EventType() Type { return PlanStarted }

// EventType implements Data.
func (PlanCompletedData) EventType() Type { return PlanCompleted }

// EventType implements Data.
func (PlanInvalidData) EventType() Type { return PlanInvalid }

// EventType implements Data.
func (PlanCancelledData) EventType() Type { return PlanCancelled }

// EventType implements Data.
func (InputRequestedData) EventType() Type { return InputRequested }

// EventType implements Data.
func (InputAnsweredData) EventType() Type { return InputAnswered }

// EventType implements Data.
func (InputExpiredData) EventType() Type { return InputExpired }

// EventType implements Data.
func (StepStartedData) EventType() Type { return StepStarted }

// EventType implements Data.
func (StepCompletedData) EventType() Type { return StepCompleted }

// EventType implements Data.
func (StepFailedData) EventType() Type { return StepFailed }

// EventType implements Data.
func (StepCancelledData) EventType() Type { return StepCancelled }

// EventType implements Data.
func (StepRestartedData) EventType() Type { return StepRestarted }

// EventType implements Data.
func (JobFailedData) EventType() Type { return JobFailed }

// EventType implements Data.
func (RetryScheduledData) EventType() Type { return RetryScheduled }

// EventType implements Data.
func (RequestFailedData) EventType() Type { return RequestFailed }

// EventType implements Data.
func (RunProgressedData) EventType() Type { return RunProgressed }

// EventType implements Data.
func (AggregateStartedData) EventType() Type { return AggregateStarted }

// EventType implements Data.
func (AggregateCompletedData) EventType() Type { return AggregateCompleted }

// EventType implements Data.
func (PipelineCompletedData) EventType() Type { return PipelineCompleted }

// EventType implements Data.
func (ErrorData) EventType() Type { return Error }

// EventType implements Data.
func (StateExportedData) EventType() Type { return StateExported }

// EventType implements Data.
func (CallRequestedData) EventType() Type { return CallRequested }

// EventType implements Data.
func (CommandRefusedData) EventType() Type { return CommandRefused }

// EventType implements Data.
func (InboxCreatedData) EventType() Type { return InboxCreated }

// EventType implements Data.
func (InboxRegisteredData) EventType() Type { return InboxRegistered }

// EventType implements Data.
func (InboxMessagedData) EventType() Type { return InboxMessaged }

// EventType implements Data.
func (TaskCreatedData) EventType() Type { return TaskCreated }

// EventType implements Data.
func (TaskQueuedData) EventType() Type { return TaskQueued }

// EventType implements Data.
func (TaskAssignedData) EventType() Type { return TaskAssigned }

// EventType implements Data.
func (TaskReportedData) EventType() Type { return TaskReported }

// EventType implements Data.
func (TaskNotifiedData) EventType() Type { return TaskNotified }

// EventType implements Data.
func (TaskMessagedData) EventType() Type { return TaskMessaged }

// EventType implements Data.
func (TaskReleasedData) EventType() Type { return TaskReleased }

// EventType implements Data.
func (TaskRefusedData) EventType() Type { return TaskRefused }

// EventType implements Data.
func (TaskDeletedData) EventType() Type { return TaskDeleted }

// EventType implements Data.
func (TaskAskedData) EventType() Type { return TaskAsked }

// EventType implements Data.
func (TaskAskExpiredData) EventType() Type { return TaskAskExpired }

// EventType implements Data.
func (TaskFinishedData) EventType() Type { return TaskFinished }

// EventType implements Data.
func (ChildCreatedData) EventType() Type { return ChildCreated }

// EventType implements Data.
func (ChildFinishedData) EventType() Type { return ChildFinished }

// EventType implements Data.
func (CallStartedData) EventType() Type { return CallStarted }

// EventType implements Data.
func (CallNotifiedData) EventType() Type { return CallNotified }

// EventType implements Data.
func (CallFinishedData) EventType() Type { return CallFinished }

// EventType implements Data.
func (MemberCreatedData) EventType() Type { return MemberCreated }

// EventType implements Data.
func (MemberClosedData) EventType() Type { return MemberClosed }

// EventType implements Data.
func (JobSuspendedData) EventType() Type { return JobSuspended }

// EventType implements Data.
func (TodosUpdatedData) EventType() Type { return TodosUpdated }

// EventType implements Data.
func (ArtifactPersistedData) EventType() Type { return ArtifactPersisted }

// EventType implements Data.
func (ArtifactUpdatedData) EventType() Type { return ArtifactUpdated }

// EventType implements Data.
func (TeamCreatedData) EventType() Type { return TeamCreated }

// EventType implements Data.
func (TeamMemberStartedData) EventType() Type { return TeamMemberStarted }

// EventType implements Data.
func (TeamStatusData) EventType() Type { return TeamStatus }

// EventType implements Data.
func (TeamMessageData) EventType() Type { return TeamMessage }

// EventType implements Data.
func (TeamMessageDroppedData) EventType() Type { return TeamMessageDropped }

// EventType implements Data.
func (TeamMemberEventData) EventType() Type { return TeamMemberEvent }

// EventType implements Data.
func (TeamSubTeamEventData) EventType() Type { return TeamSubTeamEvent }

// EventType implements Data.
func (TeamStoppedData) EventType() Type { return TeamStopped }

// EventType implements Data.
func (TeamPausedData) EventType() Type { return TeamPauseBegun }

// EventType implements Data.
func (TeamResumedData) EventType() Type { return TeamResumed }

// EventType implements Data.
func (TeamClosingData) EventType() Type { return TeamClosing }

// EventType implements Data.
func (TeamClosedData) EventType() Type { return TeamClosed }

// EventType implements Data.
func (BoardCreatedData) EventType() Type { return BoardCreated }

// EventType implements Data.
func (BoardUpdatedData) EventType() Type { return BoardUpdated }

// EventType implements Data.
func (TeamActedData) EventType() Type { return TeamActed }

// Info describes one canonical type for documentation, schemas and checks.
type Info struct {
	Type    Type
	Data    Data // the zero value of its data struct
	Meaning string
}

// Known reports whether the catalogue has the type.
func Known(t Type) bool {
	return slices.ContainsFunc(Catalogue, func(i Info) bool { return i.Type == t })
}

// Catalogue lists every canonical type.
var Catalogue = []Info{
	{SessionCreated, SessionCreatedData{}, "a session exists"},
	{SessionClosed, SessionClosedData{}, "a session takes no more messages"},
	{SessionDeleted, SessionDeletedData{}, "a session was deleted: the events before it are gone, and none follows"},
	{MessageReceived, MessageReceivedData{}, "a user's message was accepted"},
	{MessageRefused, MessageRefusedData{}, "a user's message was not accepted"},
	{MessageStarted, MessageStartedData{}, "the model began a message"},
	{MessageDelta, MessageDeltaData{}, "the next piece of a message's text"},
	{ReasoningDelta, ReasoningDeltaData{}, "the next piece of what the model thinks"},
	{ReasoningCompleted, ReasoningCompletedData{}, "the reasoning of a message is whole"},
	{MessageCompleted, MessageCompletedData{}, "a message is whole"},
	{MessageDiscarded, MessageDiscardedData{}, "a message that had begun does not count"},
	{RunStarted, RunStartedData{}, "the run that answers a message began"},
	{RunCompleted, RunCompletedData{}, "the run has its answer (terminal)"},
	{RunFailed, RunFailedData{}, "the run ended in an error (terminal)"},
	{RunCancelled, RunCancelledData{}, "the run was stopped (terminal)"},
	{JobStarted, JobStartedData{}, "a worker claimed the run"},
	{AttemptRefused, AttemptRefusedData{}, "a worker that lost its claim was turned away"},
	{ToolCalled, ToolCalledData{}, "intent to call a tool"},
	{ToolStarted, ToolStartedData{}, "the call was handed to the tool"},
	{ToolCompleted, ToolCompletedData{}, "the tool's result"},
	{ToolFailed, ToolFailedData{}, "the tool call failed"},
	{ToolUnknown, ToolUnknownData{}, "the outcome of a tool call is unknown"},
	{UsageRecorded, UsageRecordedData{}, "the tokens and the cost of a model call"},
	{Notice, NoticeData{}, "a fact for people that changes no state"},
	{SessionPaused, SessionPausedData{}, "the active run was stopped; the session continues with the next message"},
	{SessionRestored, SessionRestoredData{}, "a session has the state of an export"},
	{PlanStarted, PlanStartedData{}, "a planning has begun"},
	{PlanCompleted, PlanCompletedData{}, "a plan is ready"},
	{PlanInvalid, PlanInvalidData{}, "the planner's text is not a valid list of tasks"},
	{PlanCancelled, PlanCancelledData{}, "a plan will not be carried out"},
	{InputRequested, InputRequestedData{}, "people are asked a question"},
	{InputAnswered, InputAnsweredData{}, "the one answer that counts"},
	{InputExpired, InputExpiredData{}, "a question was not answered in time"},
	{StepStarted, StepStartedData{}, "an attempt at a task began"},
	{StepCompleted, StepCompletedData{}, "a task has its result"},
	{StepFailed, StepFailedData{}, "the attempts at a task are used up"},
	{StepCancelled, StepCancelledData{}, "a task will not be solved"},
	{StepRestarted, StepRestartedData{}, "a task gets another attempt"},
	{JobFailed, JobFailedData{}, "a job ended in an error"},
	{RetryScheduled, RetryScheduledData{}, "failed work will be tried again after a pause"},
	{RequestFailed, RequestFailedData{}, "a request to the model failed and is made again after a pause"},
	{RunProgressed, RunProgressedData{}, "the progress of a run's tasks"},
	{AggregateStarted, AggregateStartedData{}, "the aggregation of the results has begun"},
	{AggregateCompleted, AggregateCompletedData{}, "the aggregation of the results is complete"},
	{PipelineCompleted, PipelineCompletedData{}, "a pipeline run, summed up"},
	{Error, ErrorData{}, "an error that does not end the run by itself"},
	{InboxCreated, InboxCreatedData{}, "a client has an inbox"},
	{InboxRegistered, InboxRegisteredData{}, "a client described itself"},
	{InboxMessaged, InboxMessagedData{}, "a message from one client to another"},
	{TaskCreated, TaskCreatedData{}, "a task for an agent was accepted"},
	{TaskQueued, TaskQueuedData{}, "a task waits for an agent"},
	{TaskAssigned, TaskAssignedData{}, "an agent has the task"},
	{TaskReported, TaskReportedData{}, "the agent reported the status of the task"},
	{TaskNotified, TaskNotifiedData{}, "the agent notified the client"},
	{TaskMessaged, TaskMessagedData{}, "the client sent the agent a message"},
	{TaskReleased, TaskReleasedData{}, "the task was taken from a lost agent"},
	{TaskRefused, TaskRefusedData{}, "a report of an agent that does not hold the task was refused"},
	{TaskDeleted, TaskDeletedData{}, "a task was deleted with its session: the events before it are gone, and none follows"},
	{TaskAsked, TaskAskedData{}, "the agent asked the client a question"},
	{TaskAskExpired, TaskAskExpiredData{}, "the agent's question was not answered in time"},
	{TaskFinished, TaskFinishedData{}, "the end of a task for an agent"},
	{ChildCreated, ChildCreatedData{}, "an agent gave a task to another"},
	{ChildFinished, ChildFinishedData{}, "a child task has ended"},
	{CallStarted, CallStartedData{}, "intent to call a tool within a task"},
	{CallNotified, CallNotifiedData{}, "a service reported the progress of a call"},
	{CallFinished, CallFinishedData{}, "the outcome of a tool call within a task"},
	{MemberCreated, MemberCreatedData{}, "a member of a team exists"},
	{MemberClosed, MemberClosedData{}, "a member accepts no more messages"},
	{JobSuspended, JobSuspendedData{}, "a job waits for people"},
	{TodosUpdated, TodosUpdatedData{}, "a member's to-do list"},
	{ArtifactPersisted, ArtifactPersistedData{}, "a member created a file"},
	{ArtifactUpdated, ArtifactUpdatedData{}, "a member changed a file"},
	{TeamCreated, TeamCreatedData{}, "a team exists"},
	{TeamMemberStarted, TeamMemberStartedData{}, "a member of a team has a log"},
	{TeamStatus, TeamStatusData{}, "the status of a team has changed"},
	{TeamMessage, TeamMessageData{}, "a message for a member was accepted"},
	{TeamMessageDropped, TeamMessageDroppedData{}, "a message will not reach its member"},
	{TeamMemberEvent, TeamMemberEventData{}, "an event of a member's log"},
	{TeamSubTeamEvent, TeamSubTeamEventData{}, "an event of a nested team's log"},
	{TeamStopped, TeamStoppedData{}, "a user stopped the members' work"},
	{TeamPauseBegun, TeamPausedData{}, "members get no more messages"},
	{TeamResumed, TeamResumedData{}, "waiting messages are delivered"},
	{TeamClosing, TeamClosingData{}, "a team shuts down"},
	{TeamClosed, TeamClosedData{}, "a team has ended"},
	{BoardCreated, BoardCreatedData{}, "tasks were put on the board of a team"},
	{BoardUpdated, BoardUpdatedData{}, "a task on the board of a team has changed"},
}

// DirectMessages lists the types of direct messages, which are not in any log and answer one connection.
var DirectMessages = []Info{
	{StateExported, StateExportedData{}, "the state of a session"},
	{CommandRefused, CommandRefusedData{}, "why a command had no effect"},
	{CallRequested, CallRequestedData{}, "a service is asked to run a tool"},
	{TeamActed, TeamActedData{}, "the outcome of a call of one of the team's tools"},
}
