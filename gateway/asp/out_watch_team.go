package asp

import (
	"maps"

	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// headed makes frames of an event of a task of the swarm that is watched, as those of
// the client's own tasks are: but the task is marked, no request is answered, and
// a child is shown as any other task.
func headed[T event.Data](f func(event.Event, T) []wire.Frame, head func(*T) *event.TaskHead) writer {
	return with(func(e event.Event, d T) []wire.Frame {
		h := head(&d)
		h.TaskID, h.RequestID, h.ParentID = watchedPrefix+h.TaskID, "", ""
		return f(e, d)
	})
}

// addSwarm adds the events of tasks of the swarm.
func addSwarm(out map[event.Type]writer) {
	maps.Copy(out, map[event.Type]writer{
		event.TaskCreated:    headed(watchedTask, func(d *event.TaskCreatedData) *event.TaskHead { return &d.TaskHead }),
		event.TaskQueued:     headed(taskQueued, func(d *event.TaskQueuedData) *event.TaskHead { return &d.TaskHead }),
		event.TaskAssigned:   headed(taskAssigned, func(d *event.TaskAssignedData) *event.TaskHead { return &d.TaskHead }),
		event.TaskReported:   headed(taskReported, func(d *event.TaskReportedData) *event.TaskHead { return &d.TaskHead }),
		event.TaskNotified:   headed(taskNotified, func(d *event.TaskNotifiedData) *event.TaskHead { return &d.TaskHead }),
		event.TaskMessaged:   headed(watchedMessage, func(d *event.TaskMessagedData) *event.TaskHead { return &d.TaskHead }),
		event.TaskReleased:   headed(taskReleased, func(d *event.TaskReleasedData) *event.TaskHead { return &d.TaskHead }),
		event.TaskAsked:      headed(taskAsked, func(d *event.TaskAskedData) *event.TaskHead { return &d.TaskHead }),
		event.TaskAskExpired: headed(taskAskExpired, func(d *event.TaskAskExpiredData) *event.TaskHead { return &d.TaskHead }),
		event.TaskFinished:   headed(taskFinished, func(d *event.TaskFinishedData) *event.TaskHead { return &d.TaskHead }),
		event.CallStarted:    headed(callStarted, func(d *event.CallStartedData) *event.TaskHead { return &d.TaskHead }),
		event.CallNotified:   headed(called, func(d *event.CallNotifiedData) *event.TaskHead { return &d.TaskHead }),
		event.CallFinished:   headed(callFinished, func(d *event.CallFinishedData) *event.TaskHead { return &d.TaskHead }),
		event.ChildCreated: headed(childCreated, func(d *event.ChildCreatedData) *event.TaskHead {
			d.ChildID = watchedPrefix + d.ChildID
			return &d.TaskHead
		}),
		event.ChildFinished: headed(childFinished, func(d *event.ChildFinishedData) *event.TaskHead {
			d.ChildID = watchedPrefix + d.ChildID
			return &d.TaskHead
		}),
	})
}

// addTeams adds the events of teams and of what only their members have.
func addTeams(out map[event.Type]writer) {
	maps.Copy(out, map[event.Type]writer{
		event.TodosUpdated:      with(todosUpdated),
		event.ArtifactPersisted: with(artifactPersisted),
		event.ArtifactUpdated:   with(artifactUpdated),
		event.TeamStatus:        with(teamStatus),
		event.TeamMessage:       noted(notifyInfo, levelInfo),
		event.TeamStopped:       noted(notifyInfo, levelWarning),
		event.BoardCreated:      with(boardCreated),
		event.BoardUpdated:      with(boardUpdated),
	})
}

// todos is the data of a notification about what an agent has to do.
type todos struct {
	Todos []event.Todo `json:"todos"`
}

func todosUpdated(e event.Event, d event.TodosUpdatedData) []wire.Frame {
	return tell(e, d.RunID, notifyStep, levelInfo, "To-do list", todos{d.Todos})
}

func artifactPersisted(e event.Event, d event.ArtifactPersistedData) []wire.Frame {
	return tell(e, d.RunID, notifyInfo, levelInfo, "Created the file "+d.Path, d.Artifact)
}

func artifactUpdated(e event.Event, d event.ArtifactUpdatedData) []wire.Frame {
	return tell(e, d.RunID, notifyInfo, levelInfo, "Changed the file "+d.Path, d.Artifact)
}

func teamStatus(e event.Event, d event.TeamStatusData) []wire.Frame {
	if d.NewStatus == event.TeamFailed {
		return tellStatus(e, "", levelError, "A member of the team has failed: "+d.ErrorMessage, wire.StatusData{Status: d.NewStatus, Reason: d.ErrorMessage})
	}
	return tellStatus(e, "", levelInfo, "The team's status has changed", wire.StatusData{Status: d.NewStatus})
}

func boardCreated(e event.Event, d event.BoardCreatedData) []wire.Frame {
	return tell(e, "", notifyStep, levelInfo, "Tasks were put on the board", steps{d.Tasks})
}

func boardUpdated(e event.Event, d event.BoardUpdatedData) []wire.Frame {
	return tell(e, "", notifyStep, levelInfo, d.TaskID+": "+d.NewStatus, d)
}

// watchEvents is the table of what a client is shown of a log that it watches. A run is
// a task, and so is each task of its plan. Other events have their neutral form.
func watchEvents() map[event.Type]writer {
	out := map[event.Type]writer{
		event.MessageReceived:  with(runCreated),
		event.MessageRefused:   with(messageRefused),
		event.MessageCompleted: with(messageCompleted),
		event.RunStarted:       with(runStarted),
		event.RunCompleted:     with(runCompleted),
		event.RunFailed:        with(runFailed),
		event.RunCancelled:     with(runCancelled),
		event.JobFailed:        with(turnFailed),
		event.RequestFailed:    with(requestFailed),
		event.JobSuspended:     with(turnPaused),
		event.ToolCalled:       with(toolCalled),
		event.ToolCompleted:    with(toolCompleted),
		event.ToolFailed:       with(toolFailed),
		event.ToolUnknown:      with(toolUnknown),
		event.Notice:           with(runNotice),

		event.PlanCompleted:      with(planCompleted),
		event.PlanInvalid:        with(planInvalid),
		event.PlanCancelled:      noted(levelWarning, levelWarning),
		event.InputRequested:     with(inputRequested),
		event.InputAnswered:      with(inputAnswered),
		event.InputExpired:       with(inputExpired),
		event.StepStarted:        with(stepStarted),
		event.StepCompleted:      with(stepCompleted),
		event.StepFailed:         with(stepFailed),
		event.StepCancelled:      with(stepCancelled),
		event.RunProgressed:      with(runProgressed),
		event.AggregateCompleted: with(aggregateCompleted),
	}
	addSwarm(out)
	addTeams(out)
	return out
}
