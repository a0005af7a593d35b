package narrate

import (
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

func taskCreated(d event.TaskCreatedData) Narration {
	return Narration{Kind: Message, Text: First(Plain(d.Data), d.TaskType), ID: d.TaskID}
}

func taskMessaged(d event.TaskMessagedData) Narration {
	return Narration{Kind: Message, Text: Plain(d.Message), ID: d.MessageID, Closes: d.InputID}
}

func taskReleased(d event.TaskReleasedData) string {
	return "The agent " + First(d.AgentName, d.AgentID) + " disconnected; the task goes to another agent."
}

func taskAsked(d event.TaskAskedData) Narration {
	return agentAsks(d.InputID, d.Message, d.Options, seconds(d.TimeoutMS))
}

// taskFinished is the answer of an agent of the swarm, or the reason why none comes.
func taskFinished(d event.TaskFinishedData) Narration {
	switch d.Status {
	case event.TaskEndCompleted:
		return Narration{Kind: Answer, Text: Plain(d.Result)}
	case event.TaskEndCancelled:
		return end("", string(fault.RunCancelled), d.Error)
	}
	lead := "Agent processing failed: "
	if name := First(d.AgentName, d.AgentID); name != "" {
		lead = "The agent " + name + " has failed: "
	}
	return end(lead, First(d.Code, string(fault.TaskFailed)), d.Error)
}

func childCreated(d event.ChildCreatedData) string {
	return "The agent gave a task to " + First(d.ChildAgentName, d.ChildAgentID, d.TaskType)
}

// childFinished reports failures. The log of the child has its answer.
func childFinished(d event.ChildFinishedData) Narration {
	if d.Status != event.TaskEndFailed {
		return Narration{}
	}
	return failed("The child task "+d.ChildID+" has failed: ", First(d.Code, string(fault.TaskFailed)), d.Error)
}

func callFinished(d event.CallFinishedData) Narration {
	switch d.Status {
	case "success":
		return Narration{Kind: Note, Text: d.Tool + ": " + Plain(d.Result), Detail: true}
	case "unknown":
		return failed("The outcome of the tool "+d.Tool+" is unknown: ", string(fault.ToolLost), d.Error)
	}
	return failed("The tool "+d.Tool+" has failed: ", First(d.Code, string(fault.ToolFailed)), d.Error)
}

func written(lead string, a event.Artifact) Narration {
	return Narration{Kind: Note, Lead: lead, Text: a.Path, Run: a.RunID}
}

func todosUpdated(d event.TodosUpdatedData) string {
	var b strings.Builder
	b.WriteString("To do:")
	for _, t := range d.Todos {
		fmt.Fprintf(&b, "\n[%s] %s", t.Status, t.Description)
	}
	return b.String()
}

// teamStatus reports the failure of a member. Other statuses are details.
func teamStatus(d event.TeamStatusData) Narration {
	if d.NewStatus == event.TeamFailed {
		return failed("", string(fault.Internal), First(d.ErrorMessage, "A member of the team has failed."))
	}
	return Narration{Kind: Note, Text: "The team's status: " + d.NewStatus, Detail: true}
}

func teamMessage(d event.TeamMessageData) Narration {
	return Narration{Kind: Note, Lead: "A message for " + d.Member + ": ", Text: d.Content, ID: d.MessageID, Detail: true}
}

func teamMessageDropped(d event.TeamMessageDroppedData) Narration {
	n := failed("A message for "+d.Member+" was dropped: ", dropCode(d.Reason), d.Reason)
	n.ID = d.MessageID
	return n
}

// dropCode returns the code of a dropped message. The reason of an intended drop is not in
// the catalogue.
func dropCode(reason string) string {
	if string(fault.Lookup(fault.Code(reason)).Code) == reason {
		return reason
	}
	return string(fault.RunCancelled)
}

func boardCreated(d event.BoardCreatedData) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Tasks of the team (%d)", len(d.Tasks))
	for _, t := range d.Tasks {
		fmt.Fprintf(&b, "\n%s: %s (%s, %s)", t.TaskID, t.TaskName, t.AssigneeName, t.Status)
	}
	return b.String()
}
