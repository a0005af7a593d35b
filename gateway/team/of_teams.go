package team

import (
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// ofTeams are the events that only teams and their members have.
var ofTeams = map[event.Type]build{
	event.TeamCreated:        with(teamCreated),
	event.TeamStatus:         with(teamStatus),
	event.TeamMessage:        with(teamMessage),
	event.TeamMessageDropped: with(teamMessageDropped),
	event.BoardCreated:       with(boardCreated),
	event.BoardUpdated:       with(boardUpdated),
	event.TodosUpdated:       with(todosUpdated),
	event.ArtifactPersisted:  with(artifactPersisted),
	event.ArtifactUpdated:    with(artifactUpdated),
}

func teamCreated(*scene, event.TeamCreatedData) []message {
	return one(wire.TeamStatus, &wire.TeamStatusPayload{NewStatus: event.TeamStarting})
}

func teamStatus(_ *scene, d event.TeamStatusData) []message {
	return one(wire.TeamStatus, &wire.TeamStatusPayload{NewStatus: d.NewStatus, OldStatus: d.OldStatus, ErrorMessage: d.ErrorMessage})
}

// teamMessage tells the sender that the message is in the team's log. Messages between
// members are shown at the receiver.
func teamMessage(_ *scene, d event.TeamMessageData) []message {
	if d.Sender != nil {
		return nil
	}
	target := d.Member
	if d.Route != "" {
		target += "/" + d.Route
	}
	return one(wire.MessageAccepted, &wire.AcceptedPayload{MessageID: d.MessageID, TargetMemberName: target})
}

// teamMessageDropped is a failure, unless the drop was intended: then the reason is not in
// the catalogue.
func teamMessageDropped(_ *scene, d event.TeamMessageDroppedData) []message {
	text := "A message for " + d.Member + " was dropped: "
	list := one(wire.TaskNotification, &wire.NotificationPayload{SenderID: "system." + string(event.TeamMessageDropped), Content: text + d.Reason})
	if entry := fault.Lookup(fault.Code(d.Reason)); string(entry.Code) == d.Reason {
		list = failure(d.Reason, text+entry.Message)
	}
	list[0].member = d.Member
	return list
}

func boardCreated(at *scene, d event.BoardCreatedData) []message {
	tasks := make([]wire.Task, 0, len(d.Tasks))
	for _, t := range d.Tasks {
		tasks = append(tasks, wire.Task{
			ID: t.TaskID, TaskID: t.TaskID, TaskName: t.TaskName, AssigneeName: t.AssigneeName, Description: t.Description,
			Dependencies: list(t.Dependencies), FileDeliverables: deliverables(t.FileDeliverables), Status: t.Status,
		})
	}
	return one(wire.TaskPlanEvent, &wire.TaskPlanPayload{EventType: wire.TasksCreated, TeamID: at.entity, Tasks: tasks})
}

func boardUpdated(at *scene, d event.BoardUpdatedData) []message {
	return one(wire.TaskPlanEvent, &wire.TaskPlanPayload{
		EventType: wire.TaskStatusUpdated, TeamID: at.entity, TaskID: d.TaskID, NewStatus: d.NewStatus, AgentName: d.AgentName,
		Deliverables: deliverables(d.Deliverables),
	})
}

func deliverables(files []event.Deliverable) []wire.Deliverable {
	out := make([]wire.Deliverable, 0, len(files))
	for _, f := range files {
		out = append(out, wire.Deliverable{FilePath: f.FilePath, Summary: f.Summary, AuthorAgentName: f.AuthorAgentName, Timestamp: f.Timestamp})
	}
	return out
}

func todosUpdated(_ *scene, d event.TodosUpdatedData) []message {
	todos := make([]wire.Todo, 0, len(d.Todos))
	for _, t := range d.Todos {
		todos = append(todos, wire.Todo{TodoID: t.TodoID, Description: t.Description, Status: t.Status})
	}
	return one(wire.TodoListUpdate, &wire.TodoListPayload{Todos: todos})
}

func artifactPersisted(_ *scene, d event.ArtifactPersistedData) []message {
	return artifact(wire.ArtifactPersisted, d.Artifact)
}

func artifactUpdated(_ *scene, d event.ArtifactUpdatedData) []message {
	return artifact(wire.ArtifactUpdated, d.Artifact)
}

func artifact(kind string, a event.Artifact) []message {
	return one(kind, &wire.ArtifactPayload{
		ArtifactID: a.ArtifactID, Path: a.Path, AgentID: a.AgentID, Type: a.Type, WorkspaceRoot: a.WorkspaceRoot, URL: a.URL,
	})
}

// list returns a list that is never null on the wire.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
