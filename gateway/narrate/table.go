package narrate

import "github.com/waggle-dev/waggle/proto-schemas/event"

// table has an entry for every canonical type and every direct message.
var table = map[event.Type]entry{
	event.SessionCreated:  silent("the greeting of the connection names the session"),
	event.SessionClosed:   minor("The session has ended."),
	event.SessionDeleted:  silent("the connection ends with the fault SESSION_DELETED"),
	event.SessionPaused:   minor("The session is paused. The next message resumes it."),
	event.SessionRestored: minor("The session was restored from an export."),

	event.MessageReceived:  with(messageReceived),
	event.MessageRefused:   with(messageRefused),
	event.MessageStarted:   silent("the text follows"),
	event.MessageDelta:     silent("the whole text follows"),
	event.MessageCompleted: with(messageCompleted),
	event.MessageDiscarded: silent("the text that counts follows, or the failure"),

	event.ReasoningDelta:     silent("the whole reasoning follows"),
	event.ReasoningCompleted: with(reasoningCompleted),

	event.RunStarted:     with(runStarted),
	event.RunCompleted:   with(runCompleted),
	event.RunFailed:      with(runFailed),
	event.RunCancelled:   with(runCancelled),
	event.JobStarted:     silent("the run has started before"),
	event.JobFailed:      with(jobFailed),
	event.JobSuspended:   minor("Waiting for people to answer"),
	event.AttemptRefused: silent("a late worker changes nothing"),
	event.RetryScheduled: silent("the failed job has been reported"),
	event.RequestFailed:  with(requestFailed),
	event.UsageRecorded:  silent("for accounts, not for people"),
	event.Notice:         with(notice),
	event.Error:          with(reportedError),

	event.ToolCalled:    detail(func(d event.ToolCalledData) string { return "Calling " + d.Tool }),
	event.ToolStarted:   silent("the call has been shown"),
	event.ToolCompleted: detail(func(d event.ToolCompletedData) string { return d.Tool + ": " + d.Result }),
	event.ToolFailed:    with(toolFailed),
	event.ToolUnknown:   with(toolUnknown),

	event.PlanStarted:        minor("Planning"),
	event.PlanCompleted:      with(planCompleted),
	event.PlanInvalid:        with(planInvalid),
	event.PlanCancelled:      with(planCancelled),
	event.InputRequested:     with(inputRequested),
	event.InputAnswered:      with(inputAnswered),
	event.InputExpired:       with(inputExpired),
	event.StepStarted:        with(stepStarted),
	event.StepCompleted:      with(stepCompleted),
	event.StepFailed:         with(stepFailed),
	event.StepCancelled:      with(stepCancelled),
	event.StepRestarted:      silent("the step starts again"),
	event.RunProgressed:      silent("the steps report their ends"),
	event.AggregateStarted:   minor("Combining the results into one answer"),
	event.AggregateCompleted: with(aggregateCompleted),
	event.PipelineCompleted:  silent("the end of the run follows"),

	event.InboxCreated:    silent("the greeting of the connection names the inbox"),
	event.InboxRegistered: silent("the client knows its own name"),
	event.InboxMessaged:   silent("the client of the inbox has a frame for it, and no other connection shows inboxes"),

	event.TaskCreated: inTask(with(taskCreated)),
	event.TaskQueued:  inTask(minor("The task waits for an agent")),
	event.TaskAssigned: inTask(note(func(d event.TaskAssignedData) string {
		return "The agent " + First(d.AgentName, d.AgentID) + " has the task"
	})),
	event.TaskReported:   inTask(detail(func(d event.TaskReportedData) string { return "The agent reports a status: " + d.Status })),
	event.TaskNotified:   inTask(note(func(d event.TaskNotifiedData) string { return First(Plain(d.Message), d.NotificationType) })),
	event.TaskMessaged:   inTask(with(taskMessaged)),
	event.TaskReleased:   inTask(note(taskReleased)),
	event.TaskRefused:    silent("a late report changes nothing"),
	event.TaskDeleted:    inTask(same("The task was deleted with its session.")),
	event.TaskAsked:      inTask(with(taskAsked)),
	event.TaskAskExpired: inTask(with(func(d event.TaskAskExpiredData) Narration { return expired(d.InputID) })),
	event.TaskFinished:   inTask(with(taskFinished)),
	event.ChildCreated:   inTask(detail(childCreated)),
	event.ChildFinished:  inTask(with(childFinished)),
	event.CallStarted:    inTask(detail(func(d event.CallStartedData) string { return "Calling " + d.Tool })),
	event.CallNotified:   inTask(detail(func(d event.CallNotifiedData) string { return First(d.Message, Plain(d.Data), d.NotificationType) })),
	event.CallFinished:   inTask(with(callFinished)),

	event.MemberCreated:     detail(func(d event.MemberCreatedData) string { return "A member has joined: " + d.Name }),
	event.MemberClosed:      minor("The member has ended."),
	event.TodosUpdated:      detail(todosUpdated),
	event.ArtifactPersisted: with(func(d event.ArtifactPersistedData) Narration { return written("Created the file ", d.Artifact) }),
	event.ArtifactUpdated:   with(func(d event.ArtifactUpdatedData) Narration { return written("Changed the file ", d.Artifact) }),

	event.TeamCreated:        detail(func(d event.TeamCreatedData) string { return "The team was created: " + d.Definition.Name }),
	event.TeamMemberStarted:  detail(func(d event.TeamMemberStartedData) string { return "A member has started: " + d.Name }),
	event.TeamStatus:         with(teamStatus),
	event.TeamMessage:        with(teamMessage),
	event.TeamMessageDropped: with(teamMessageDropped),
	event.TeamMemberEvent:    {tell: unreadable}, // event.Unwrap has replaced those that can be read.
	event.TeamSubTeamEvent:   {tell: unreadable},
	event.TeamStopped:        note(func(d event.TeamStoppedData) string { return "Stopped: " + First(d.Member, "all members") }),
	event.TeamPauseBegun:     same("The team is paused."),
	event.TeamResumed:        same("The team goes on."),
	event.TeamClosing:        same("The team is shutting down."),
	event.TeamClosed:         same("The team has ended."),
	event.BoardCreated:       note(boardCreated),
	event.BoardUpdated:       note(func(d event.BoardUpdatedData) string { return d.TaskID + ": " + d.NewStatus + " (" + d.AgentName + ")" }),

	event.StateExported:  silent("dialects with exports have a frame for them"),
	event.CommandRefused: with(func(d event.CommandRefusedData) Narration { return failed("", d.Code, d.Message) }),
	event.CallRequested:  silent("for providers, not for people"),
	event.TeamActed:      silent("for workers, not for people"),
}

func unreadable(event.Event) (Narration, error) { return Narration{}, ErrUnreadable }

// Of returns the neutral form of an event. Dialects pass the result of event.Unwrap. A
// type without an entry gives a silent narration. An error means that the data of the
// event cannot be read.
func Of(e event.Event) (Narration, error) {
	entry, ok := table[e.Type]
	if !ok || entry.tell == nil {
		return Narration{}, nil
	}
	return entry.tell(e)
}
