package team

import (
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// dependencyFailed is why a task is not solved that others hold up.
const dependencyFailed = "dependency_failed"

// ofPlans are the events of runs with a plan, which is shown like a board.
var ofPlans = map[event.Type]build{
	event.PlanCompleted:      with(planCompleted),
	event.PlanInvalid:        with(planInvalid),
	event.StepStarted:        with(taskStarted),
	event.StepCompleted:      with(taskCompleted),
	event.StepFailed:         with(taskFailed),
	event.StepCancelled:      with(taskCancelled),
	event.StepRestarted:      with(taskRestarted),
	event.AggregateCompleted: with(aggregateCompleted),
}

// tasksCreated is a plan as a whole.
func (at *scene) tasksCreated(tasks []event.Step) []message {
	return one(wire.TaskPlanEvent, &wire.TaskPlanPayload{EventType: wire.TasksCreated, TeamID: at.entity, Tasks: planTasks(tasks)})
}

func planTasks(tasks []event.Step) []wire.Task {
	out := make([]wire.Task, 0, len(tasks))
	for _, t := range tasks {
		out = append(out, wire.Task{
			ID: t.ID, TaskID: t.ID, TaskName: t.Title, AssigneeName: narrate.First(t.Capability, assistant), Description: narrate.First(t.Description, t.Title),
			Dependencies: list(t.Dependencies), FileDeliverables: []wire.Deliverable{}, Status: event.BoardNotStarted,
		})
	}
	return out
}

// taskUpdated is what has become of a task.
func (at *scene) taskUpdated(task, status, by string) []message {
	return one(wire.TaskPlanEvent, &wire.TaskPlanPayload{
		EventType: wire.TaskStatusUpdated, TeamID: at.entity, TaskID: task, NewStatus: status, AgentName: by,
	})
}

func planCompleted(at *scene, d event.PlanCompletedData) []message { return at.tasksCreated(d.Steps) }

func planInvalid(_ *scene, d event.PlanInvalidData) []message { return failure(d.Code, d.Message) }

func taskStarted(at *scene, d event.StepStartedData) []message {
	return at.taskUpdated(d.Step.ID, event.BoardInProgress, assistant)
}

func taskCompleted(at *scene, d event.StepCompletedData) []message {
	return at.taskUpdated(d.StepID, event.BoardCompleted, assistant)
}

func taskFailed(at *scene, d event.StepFailedData) []message {
	return joined(at.taskUpdated(d.StepID, event.BoardFailed, assistant), failure(d.Code, d.Message))
}

func taskCancelled(at *scene, d event.StepCancelledData) []message {
	status := event.BoardFailed
	if d.Reason == dependencyFailed {
		status = event.BoardBlocked
	}
	return at.taskUpdated(d.StepID, status, assistant)
}

func taskRestarted(at *scene, d event.StepRestartedData) []message {
	return at.taskUpdated(d.StepID, event.BoardQueued, assistant)
}

// aggregateCompleted is the answer. The run's end says it again, under the same id.
func aggregateCompleted(_ *scene, d event.AggregateCompletedData) []message {
	return complete(d.Result, d.MessageID, "")
}
