package orbit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/orbit"
)

// nearest are the frames of what the original protocol has no word for: runs with a
// plan, tasks of the swarm, members of teams and teams. What a viewer should know is
// said as what the agent is thinking. An error without an execution id ends no run.
var nearest = frames{
	event.InputRequested: with(inputRequested),
	event.InputAnswered:  with(inputAnswered),
	event.InputExpired:   with(inputExpired),
	event.TaskAsked:      with(taskAsked),
	event.TaskAskExpired: with(taskAskExpired),

	event.JobFailed:          with(turnFailed),
	event.RequestFailed:      with(requestFailed),
	event.StepFailed:         with(taskFailed),
	event.PlanInvalid:        with(planInvalid),
	event.Error:              with(runError),
	event.Notice:             with(workerNotice),
	event.TeamStatus:         with(teamStatus),
	event.TeamMessageDropped: with(teamMessageDropped),
	event.ChildFinished:      with(childFinished),
	event.TaskFinished:       with(taskFinished),

	event.PlanCompleted:      with(planCompleted),
	event.PlanCancelled:      with(planCancelled),
	event.StepStarted:        with(taskStarted),
	event.StepCompleted:      with(taskCompleted),
	event.StepCancelled:      with(taskCancelled),
	event.AggregateCompleted: with(aggregateCompleted),

	event.TaskCreated:  with(taskCreated),
	event.TaskAssigned: with(taskAssigned),
	event.TaskReleased: with(taskReleased),
	event.TaskNotified: with(taskNotified),
	event.TaskMessaged: with(taskMessaged),
	event.CallStarted:  with(callStarted),
	event.CallFinished: with(callFinished),

	event.ArtifactPersisted: with(artifactPersisted),
	event.ArtifactUpdated:   with(artifactUpdated),
	event.TeamStopped:       with(teamStopped),
	event.TeamPauseBegun:    with(teamPaused),
	event.TeamResumed:       with(teamResumed),
	event.TeamClosing:       with(teamClosing),
	event.TeamClosed:        with(teamClosed),
	event.BoardCreated:      with(boardCreated),
	event.BoardUpdated:      with(boardUpdated),

	event.TeamMemberEvent:  unreadable, // Of those that can be read event.Unwrap has taken the inner one.
	event.TeamSubTeamEvent: unreadable,
}

// note says something as what the agent is thinking.
func note(e event.Event, exec, format string, args ...any) ([]byte, error) {
	return frame(wire.AgentThinking, exec, e, wire.ThoughtData{Message: fmt.Sprintf(format, args...)})
}

// workerNotice is said to one connection: whether a worker is available. Notices of the
// log change nothing that a chat shows.
func workerNotice(e event.Event, d event.NoticeData) ([]byte, error) {
	if d.Code != event.NoWorker && d.Code != event.WorkerBack {
		return nil, nil
	}
	return frame(wire.AgentThinking, "", e, wire.ThoughtData{Message: d.Message, Code: d.Code})
}

// ask says a question: what is asked, and how to answer.
func ask(e event.Event, exec, text string, q wire.Question) ([]byte, error) {
	id, err := json.Marshal(q.ID)
	if err != nil {
		return nil, fmt.Errorf("encode the id of a question: %w", err)
	}
	how := `{"type":"answer","question_id":` + string(id) + `,"approved":true}`
	if q.Scope == scopeTask {
		text += "\nTo answer, send " + strings.TrimSuffix(how, "}") + `,"feedback":"<your answer>"}.`
	} else {
		text += "\nTo allow it, send " + how + "; to refuse, the same with false."
	}
	return frame(wire.AgentThinking, exec, e, wire.ThoughtData{Message: text, Question: &q})
}

// scopeTask is the scope of the question of an agent of the swarm.
const scopeTask = "task"

// requestFailed tells a user who waits why, and for how long.
func requestFailed(e event.Event, d event.RequestFailedData) ([]byte, error) {
	return note(e, d.ExecutionID, "%s", d.Text())
}

func inputRequested(e event.Event, d event.InputRequestedData) ([]byte, error) {
	q := wire.Question{ID: d.InputID, Scope: d.Scope, TimeoutSeconds: d.TimeoutSeconds}
	if d.Scope == event.ScopeBudget {
		return ask(e, d.ExecutionID, d.Summary, q)
	}
	if d.Scope != event.ScopeTool {
		return ask(e, d.ExecutionID, planText("The plan has to be confirmed", d.Steps, d.Summary), q)
	}
	args, err := arguments(d.Arguments)
	if err != nil {
		return nil, err
	}
	q.Tool, q.Arguments = d.Tool, args
	text := "May the tool " + d.Tool + " be called with " + preview(string(args)) + "?"
	if d.Description != "" {
		text += "\n" + d.Description
	}
	return ask(e, d.ExecutionID, text, q)
}

// planText says what a plan is to do.
func planText(head string, tasks []event.Step, summary string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (tasks: %d)", head, len(tasks))
	if summary != "" {
		b.WriteString(": " + summary)
	}
	for i, t := range tasks {
		fmt.Fprintf(&b, "\n%d. %s", i+1, orDefault(t.Title, t.ID))
	}
	return b.String()
}

func inputAnswered(e event.Event, d event.InputAnsweredData) ([]byte, error) {
	text := "The question " + d.InputID + " was answered: " + d.Decision
	if d.By != "" {
		text += " by " + d.By
	}
	if d.Feedback != "" {
		text += " (" + d.Feedback + ")"
	}
	return note(e, d.ExecutionID, "%s", text)
}

func inputExpired(e event.Event, d event.InputExpiredData) ([]byte, error) {
	return expired(e, d.InputID)
}

// expired tells that a question has no answer.
func expired(e event.Event, question string) ([]byte, error) {
	return errorFrame(e, "", string(fault.InputExpired), "The question "+question+" was not answered in time.")
}

// turnFailed is news only where no other try follows.
func turnFailed(e event.Event, d event.JobFailedData) ([]byte, error) {
	if d.Retryable && d.Try < d.MaxTries {
		return nil, nil
	}
	code, message := said(d.Code, d.Message)
	return errorFrame(e, "", code, "The work on it has failed: "+message)
}

func taskFailed(e event.Event, d event.StepFailedData) ([]byte, error) {
	code, message := said(d.Code, d.Message)
	return errorFrame(e, "", code, "The task "+orDefault(d.Title, d.StepID)+" has failed: "+message)
}

func planInvalid(e event.Event, d event.PlanInvalidData) ([]byte, error) {
	code, message := said(orDefault(d.Code, string(fault.PlanInvalid)), d.Message)
	return errorFrame(e, "", code, message)
}

func runError(e event.Event, d event.ErrorData) ([]byte, error) {
	code, message := said(d.Code, d.Message)
	return errorFrame(e, "", code, message)
}

func teamStatus(e event.Event, d event.TeamStatusData) ([]byte, error) {
	if d.NewStatus != event.TeamFailed {
		return nil, nil
	}
	return errorFrame(e, "", string(fault.Internal), orDefault(d.ErrorMessage, "A member of the team has failed."))
}

func teamMessageDropped(e event.Event, d event.TeamMessageDroppedData) ([]byte, error) {
	code := fault.Lookup(fault.Code(d.Reason)).Code
	if string(code) != d.Reason {
		code = fault.RunCancelled
	}
	return errorFrame(e, "", string(code), "A message for "+d.Member+" was dropped: "+d.Reason)
}

func childFinished(e event.Event, d event.ChildFinishedData) ([]byte, error) {
	if d.Status != event.TaskEndFailed {
		return nil, nil
	}
	code, message := said(orDefault(d.Code, string(fault.TaskFailed)), d.Error)
	return errorFrame(e, "", code, "The child task "+d.ChildID+" has failed: "+message)
}

// taskFinished is the answer of an agent of the swarm, or why there is none.
func taskFinished(e event.Event, d event.TaskFinishedData) ([]byte, error) {
	switch d.Status {
	case event.TaskEndCompleted:
		return frame(wire.AgentResponse, "", e, wire.ResponseData{Message: dialect.Plain(d.Result), ExecutionCompleted: true})
	case event.TaskEndCancelled:
		return errorFrame(e, "", string(fault.RunCancelled), orDefault(d.Error, fault.Lookup(fault.RunCancelled).Message))
	}
	code, message := said(orDefault(d.Code, string(fault.TaskFailed)), d.Error)
	return errorFrame(e, "", code, "Agent processing failed: "+message)
}

func planCompleted(e event.Event, d event.PlanCompletedData) ([]byte, error) {
	return note(e, d.ExecutionID, "%s", planText("Plan", d.Steps, d.Summary))
}

func planCancelled(e event.Event, d event.PlanCancelledData) ([]byte, error) {
	return note(e, d.ExecutionID, "The plan will not be carried out: %s", d.Reason)
}

func taskStarted(e event.Event, d event.StepStartedData) ([]byte, error) {
	return note(e, d.ExecutionID, "Working on: %s", orDefault(d.Step.Title, d.Step.ID))
}

func taskCompleted(e event.Event, d event.StepCompletedData) ([]byte, error) {
	return note(e, d.ExecutionID, "Done: %s\n%s", orDefault(d.Title, d.StepID), d.Output)
}

func taskCancelled(e event.Event, d event.StepCancelledData) ([]byte, error) {
	return note(e, d.ExecutionID, "Cancelled: %s (%s)", orDefault(d.Title, d.StepID), d.Reason)
}

func aggregateCompleted(e event.Event, d event.AggregateCompletedData) ([]byte, error) {
	return note(e, d.ExecutionID, "The result of all tasks:\n%s", d.Result)
}

func taskCreated(e event.Event, d event.TaskCreatedData) ([]byte, error) {
	return frame(wire.UserInput, "", e, wire.MessageData{Message: orDefault(dialect.Plain(d.Data), d.TaskType)})
}

func taskAssigned(e event.Event, _ event.TaskAssignedData) ([]byte, error) {
	return note(e, "", "%s", wire.ThinkingText)
}

func taskReleased(e event.Event, d event.TaskReleasedData) ([]byte, error) {
	return note(e, "", "The agent %s is gone; the task goes to another.", orDefault(d.AgentName, d.AgentID))
}

func taskNotified(e event.Event, d event.TaskNotifiedData) ([]byte, error) {
	return note(e, "", "%s", orDefault(dialect.Plain(d.Message), d.NotificationType))
}

func taskMessaged(e event.Event, d event.TaskMessagedData) ([]byte, error) {
	return frame(wire.UserInput, "", e, wire.MessageData{Message: dialect.Plain(d.Message)})
}

func taskAsked(e event.Event, d event.TaskAskedData) ([]byte, error) {
	options := json.RawMessage(bytes.ToValidUTF8(d.Options, []byte("\ufffd")))
	if len(options) == 0 || string(options) == "null" {
		options = nil
	}
	text := orDefault(dialect.Plain(d.Message), "The agent asks.")
	if options != nil {
		text += "\nOptions: " + string(options)
	}
	return ask(e, "", text, wire.Question{
		ID: d.InputID, Scope: scopeTask, Options: options, TimeoutSeconds: int((d.TimeoutMS + msPerSecond - 1) / msPerSecond),
	})
}

// msPerSecond turns the unit of tasks into that of frames.
const msPerSecond = 1000

func taskAskExpired(e event.Event, d event.TaskAskExpiredData) ([]byte, error) {
	return expired(e, d.InputID)
}

func callStarted(e event.Event, d event.CallStartedData) ([]byte, error) {
	args, err := arguments(d.Arguments)
	if err != nil {
		return nil, err
	}
	return frame(wire.ToolCalled, "", e, wire.ToolCalledData{ToolName: d.Tool, Description: "Executing " + d.Tool, Arguments: args})
}

func callFinished(e event.Event, d event.CallFinishedData) ([]byte, error) {
	switch d.Status {
	case "success":
		return toolResult(e, "", d.Tool, orDefault(dialect.Plain(d.Result), "Tool executed successfully"))
	case "unknown":
		return toolResult(e, "", d.Tool, "Outcome unknown: "+orDefault(d.Error, d.Code))
	}
	return toolResult(e, "", d.Tool, "Failed: "+orDefault(d.Error, d.Code))
}

func artifactPersisted(e event.Event, d event.ArtifactPersistedData) ([]byte, error) {
	return note(e, "", "Made the file %s", d.Path)
}

func artifactUpdated(e event.Event, d event.ArtifactUpdatedData) ([]byte, error) {
	return note(e, "", "Changed the file %s", d.Path)
}

func teamStopped(e event.Event, d event.TeamStoppedData) ([]byte, error) {
	return note(e, "", "Stopped: %s", orDefault(d.Member, "all members"))
}

func teamPaused(e event.Event, _ event.TeamPausedData) ([]byte, error) {
	return note(e, "", "The team is paused.")
}

func teamResumed(e event.Event, _ event.TeamResumedData) ([]byte, error) {
	return note(e, "", "The team goes on.")
}

func teamClosing(e event.Event, _ event.TeamClosingData) ([]byte, error) {
	return note(e, "", "The team shuts down.")
}

func teamClosed(e event.Event, _ event.TeamClosedData) ([]byte, error) {
	return note(e, "", "The team has ended.")
}

func boardCreated(e event.Event, d event.BoardCreatedData) ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Tasks of the team (%d)", len(d.Tasks))
	for _, t := range d.Tasks {
		fmt.Fprintf(&b, "\n%s: %s (%s, %s)", t.TaskID, t.TaskName, t.AssigneeName, t.Status)
	}
	return note(e, "", "%s", b.String())
}

func boardUpdated(e event.Event, d event.BoardUpdatedData) ([]byte, error) {
	return note(e, "", "%s: %s (%s)", d.TaskID, d.NewStatus, d.AgentName)
}

// unreadable says that an event of another log cannot be read.
func unreadable(event.Event) ([]byte, error) { return nil, errUnreadable }
