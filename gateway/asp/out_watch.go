package asp

import (
	"strings"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/gateway/narrate"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Types of notifications of watched runs.
const (
	notifyInfo  = "info"
	notifyStep  = "step"
	notifyError = "error"
	levelError  = "error"
)

// toolService is the service as which the tools of a run are shown.
const toolService = "tools"

// isWatched reports whether an event is of a log that is watched, and not of the
// client's own. Direct messages are of no log.
func isWatched(e event.Event) bool {
	return e.Sequence > 0 && !strings.Contains(e.Subject, "."+string(id.KindInbox)+".")
}

// noted returns the writer that shows the neutral text of an event as a notification.
func noted(kind, level string) writer {
	return func(e event.Event) ([]wire.Frame, error) {
		n, err := narrate.Of(e)
		if err != nil {
			return nil, err
		}
		return tell(e, n.Run, kind, level, strings.TrimSuffix(n.Whole(), "."), nil), nil
	}
}

// neutral writes the neutral form of events that people should know.
func neutral(e event.Event) ([]wire.Frame, error) {
	n, err := narrate.Of(e)
	if err != nil || n.Detail {
		return nil, err
	}
	switch n.Kind {
	case narrate.Note, narrate.Message, narrate.Answer:
		return noted(notifyInfo, levelInfo)(e)
	case narrate.Failure:
		return tellFailure(e, n.Run, n.Lead, n.Text, failing{Code: n.Code}), nil
	case narrate.Question:
		return frames(wire.TaskRequestMessage, "", wire.TaskQuestionContent{
			TaskID: watchedPrefix + n.Ask.ID, ParentTaskID: taskOf(e, n.Run), AgentID: e.Via.AgentID, AgentName: e.Via.Route,
			MessageType: "input_request", Message: quoted(n.Whole()), Options: n.Ask.Options,
			Timeout: int64(n.Ask.TimeoutSeconds) * msPerSecond, InputID: n.Ask.ID,
		}), nil
	case narrate.Silent:
	}
	return nil, nil
}

// locate fills in what frames of a watched log have instead of a seq of the client's.
func locate(e event.Event, f *wire.Frame, last bool) {
	_, run, _ := strings.Cut(e.Subject, ".")
	f.Seq, f.Watched = 0, &wire.Watched{Run: strings.Replace(run, ".", "/", 1), Member: e.Via.Route}
	if last {
		f.Watched.Seq = e.Sequence
	}
}

// taskOf names what an event is about as a task: its run, else the member or the log.
func taskOf(e event.Event, run string) string {
	return watchedPrefix + first(run, e.Via.AgentID, e.Via.TeamID, e.Subject[strings.LastIndexByte(e.Subject, '.')+1:])
}

// tell is a notification about a run, which data explain.
func tell(e event.Event, run, kind, level, text string, data any) []wire.Frame {
	n := wire.TaskNotificationContent{
		TaskID: taskOf(e, run), AgentID: e.Via.AgentID, AgentName: e.Via.Route, NotificationType: kind, Message: quoted(text),
		Level: level, Timestamp: wire.Stamp(e.Time),
	}
	if data != nil {
		n.Data = strict.Encoded(data)
	}
	return frames(wire.TaskNotification, "", n)
}

// tellStatus is a notification that a run has another status.
func tellStatus(e event.Event, run, level, text string, data wire.StatusData) []wire.Frame {
	return tell(e, run, notifyStatus, level, text, data)
}

// failing is what explains a failure.
type failing struct {
	Code     string `json:"code"`
	InputID  string `json:"inputId,omitempty"`
	Try      int    `json:"try,omitempty"`
	MaxTries int    `json:"maxTries,omitempty"`
}

// tellFailure is a notification that something has failed, which ends no run.
func tellFailure(e event.Event, run, what, message string, data failing) []wire.Frame {
	data.Code = first(data.Code, string(fault.Internal))
	text := first(message, fault.Lookup(fault.Code(data.Code)).Message)
	return tell(e, run, notifyError, levelError, what+text, data)
}

func runCreated(e event.Event, d event.MessageReceivedData) []wire.Frame {
	status := statusCreated
	if d.Queued > 0 {
		status = statusQueued
	}
	return frames(wire.TaskCreateResponse, "", wire.TaskCreatedContent{
		TaskID: taskOf(e, d.RunID), AgentID: e.Via.AgentID, AgentName: e.Via.Route, Status: status, CreatedAt: wire.Stamp(e.Time), Message: d.Content,
	})
}

func messageRefused(e event.Event, d event.MessageRefusedData) []wire.Frame {
	return tellFailure(e, "", "A message was not accepted: ", d.Message, failing{Code: d.Code})
}

// messageCompleted shows a text when it is whole. A message that only calls tools has none.
func messageCompleted(e event.Event, d event.MessageCompletedData) []wire.Frame {
	if d.Content == "" {
		return nil
	}
	return tell(e, d.RunID, notifyInfo, levelInfo, d.Content, nil)
}

func runStarted(e event.Event, d event.RunStartedData) []wire.Frame {
	return tellStatus(e, d.RunID, levelInfo, "The run has started", wire.StatusData{Status: statusRunning})
}

func runCompleted(e event.Event, d event.RunCompletedData) []wire.Frame {
	end := ending(e, d.RunID, event.TaskEndCompleted)
	end.Result = quoted(d.Content)
	return frames(wire.TaskResult, "", end)
}

// ending fills in what the ends of all runs have.
func ending(e event.Event, run, status string) wire.TaskResultContent {
	return wire.TaskResultContent{
		TaskID: taskOf(e, run), AgentID: e.Via.AgentID, AgentName: e.Via.Route, Status: status, CompletedAt: wire.Stamp(e.Time),
	}
}

// runFailed is told twice, as the failure of a task is.
func runFailed(e event.Event, d event.RunFailedData) []wire.Frame {
	end := ending(e, d.RunID, event.TaskEndFailed)
	end.Code = first(d.Code, string(fault.Internal))
	end.Error = first(d.Message, fault.Lookup(fault.Code(end.Code)).Message)
	if d.Answer != "" {
		end.Result = quoted(d.Answer)
	}
	return append(frames(wire.TaskError, "", wire.TaskErrorContent{
		TaskID: end.TaskID, AgentID: end.AgentID, AgentName: end.AgentName, Error: end.Error, Code: end.Code, Status: end.Status,
		FailedAt: end.CompletedAt, Timestamp: end.CompletedAt,
	}), frames(wire.TaskResult, "", end)...)
}

func runCancelled(e event.Event, d event.RunCancelledData) []wire.Frame {
	end := ending(e, d.RunID, event.TaskEndCancelled)
	end.Code, end.Error = string(fault.RunCancelled), fault.Lookup(fault.RunCancelled).Message
	if d.Reason != "" {
		end.Error += " (reason: " + d.Reason + ")"
	}
	return frames(wire.TaskResult, "", end)
}

func turnFailed(e event.Event, d event.JobFailedData) []wire.Frame {
	return tellFailure(e, d.RunID, "The job has failed: ", d.Message, failing{Code: d.Code, Try: d.Try, MaxTries: d.MaxTries})
}

func turnPaused(e event.Event, d event.JobSuspendedData) []wire.Frame {
	return tellStatus(e, d.RunID, levelInfo, "Waiting for people to answer", wire.StatusData{Status: "waiting_input", Attempt: d.Attempt})
}

func toolCalled(e event.Event, d event.ToolCalledData) []wire.Frame {
	return frames(wire.ServiceStarted, "", wire.ServiceStartedContent{
		ServiceID: toolService, ServiceName: toolService, TaskID: taskOf(e, d.RunID), Operation: d.Tool, ServiceTaskID: d.CallID,
		ToolID: d.Tool, ToolName: d.Tool, AgentID: e.Via.AgentID, AgentName: e.Via.Route, Timestamp: wire.Stamp(e.Time),
	})
}

// toolEnded is the outcome of a call of a tool by a run.
func toolEnded(e event.Event, run, call, status string) wire.ServiceCompletedContent {
	return wire.ServiceCompletedContent{
		ServiceID: toolService, ServiceName: toolService, TaskID: taskOf(e, run), ServiceTaskID: call, Status: status, Timestamp: wire.Stamp(e.Time),
	}
}

func toolCompleted(e event.Event, d event.ToolCompletedData) []wire.Frame {
	c := toolEnded(e, d.RunID, d.CallID, statusSuccess)
	c.Result, c.ExecutionTime = quoted(d.Result), d.DurationMS
	return frames(wire.ServiceCompleted, "", c)
}

func toolFailed(e event.Event, d event.ToolFailedData) []wire.Frame {
	c := toolEnded(e, d.RunID, d.CallID, "error")
	c.Code, c.ExecutionTime = first(d.Code, string(fault.ToolFailed)), d.DurationMS
	c.Error = first(d.Message, fault.Lookup(fault.Code(c.Code)).Message)
	return frames(wire.ServiceCompleted, "", c)
}

func toolUnknown(e event.Event, d event.ToolUnknownData) []wire.Frame {
	c := toolEnded(e, d.RunID, d.CallID, "unknown")
	c.Code, c.Error = string(fault.ToolLost), first(d.Message, fault.Lookup(fault.ToolLost).Message)
	return frames(wire.ServiceCompleted, "", c)
}

func runNotice(e event.Event, d event.NoticeData) []wire.Frame {
	level := levelInfo
	if d.Level == levelWarning {
		level = levelWarning
	}
	return tell(e, d.RunID, level, level, first(d.Message, d.Action, d.Code), nil)
}

// retrying explains a request to the model that is made again.
type retrying struct {
	Code         string `json:"code"`
	Try          int    `json:"try"`
	MaxTries     int    `json:"maxTries"`
	RetryAfterMS int64  `json:"retryAfterMs"`
}

func requestFailed(e event.Event, d event.RequestFailedData) []wire.Frame {
	return tell(e, d.RunID, levelWarning, levelWarning, d.Text(), retrying{first(d.Code, string(fault.Internal)), d.Try, d.MaxTries, d.RetryAfterMS})
}

// steps are the tasks of a plan, or of a team's board, as the data of a notification.
type steps struct {
	Tasks any `json:"tasks"`
}

func planCompleted(e event.Event, d event.PlanCompletedData) []wire.Frame {
	return tell(e, d.RunID, notifyStep, levelInfo, first(d.Summary, "The plan is made"), steps{d.Steps})
}

func planInvalid(e event.Event, d event.PlanInvalidData) []wire.Frame {
	return tellFailure(e, d.RunID, "", d.Message, failing{Code: first(d.Code, string(fault.PlanInvalid)), InputID: d.InputID})
}

// inputRequested is a question of its own task, which is a child of the run: so whatever
// a client answers to that task answers the question.
func inputRequested(e event.Event, d event.InputRequestedData) []wire.Frame {
	if d.Scope == event.ScopeClientTool { // an answer here could not carry the result
		return tellStatus(e, d.RunID, levelInfo, narrate.ClientTool(d), wire.StatusData{Status: statusRunning, InputID: d.InputID})
	}
	if d.Scope == event.ScopeAgent {
		return frames(wire.TaskRequestMessage, "", wire.TaskQuestionContent{
			TaskID: watchedPrefix + d.InputID, ParentTaskID: taskOf(e, d.RunID), AgentID: d.AgentID, AgentName: first(e.Via.Route, d.AgentName),
			MessageType: first(d.MessageType, "input_request"), Message: orNull(d.Message), Options: d.Options,
			Timeout: int64(d.TimeoutSeconds) * msPerSecond, InputID: d.InputID,
		})
	}
	return frames(wire.TaskRequestMessage, "", wire.TaskQuestionContent{
		TaskID: watchedPrefix + d.InputID, ParentTaskID: taskOf(e, d.RunID), AgentID: e.Via.AgentID, AgentName: e.Via.Route,
		MessageType: "input_request", Message: quoted(questionText(d)), Options: strict.Encoded([]string{event.DecisionApprove, event.DecisionReject}),
		Timeout: int64(d.TimeoutSeconds) * msPerSecond, InputID: d.InputID,
	})
}

// msPerSecond turns the unit of questions into that of frames.
const msPerSecond = 1000

// questionText says what is asked.
func questionText(d event.InputRequestedData) string {
	if d.Scope == event.ScopeTool {
		text := "May the tool " + d.Tool + " be called with " + first(string(orNull(d.Arguments)), "nothing") + "?"
		if d.Description != "" {
			text += "\n" + d.Description
		}
		return text
	}
	if d.Scope == event.ScopeBudget {
		return d.Summary
	}
	text := "May the plan be carried out?"
	if d.Summary != "" {
		text += " " + d.Summary
	}
	for _, t := range d.Steps {
		text += "\n- " + first(t.Title, t.ID)
	}
	return text
}

func inputAnswered(e event.Event, d event.InputAnsweredData) []wire.Frame {
	text := "The question was answered: " + d.Decision
	if d.By != "" {
		text += " by " + d.By
	}
	return tellStatus(e, d.RunID, levelInfo, text, wire.StatusData{Status: statusRunning, Reason: d.Decision, InputID: d.InputID})
}

func inputExpired(e event.Event, d event.InputExpiredData) []wire.Frame {
	if d.Withdrawn {
		return tellStatus(e, d.RunID, levelInfo, narrate.Withdrawn(d), wire.StatusData{Status: statusRunning, InputID: d.InputID})
	}
	return tellStatus(e, d.RunID, levelWarning, "The question was not answered in time",
		wire.StatusData{Status: statusRunning, Reason: string(fault.InputExpired), InputID: d.InputID})
}

func stepStarted(e event.Event, d event.StepStartedData) []wire.Frame {
	return frames(wire.ChildTaskCreated, "", wire.ChildTaskCreatedContent{
		ParentTaskID: taskOf(e, d.RunID), ChildTaskID: watchedPrefix + d.Step.ID, AgentID: e.Via.AgentID, TaskType: d.Step.Capability, Description: d.Step.Title,
	})
}

// step is the end of a task of a plan.
func step(e event.Event, run, task, status string) wire.ChildTaskStatusContent {
	return wire.ChildTaskStatusContent{ParentTaskID: taskOf(e, run), ChildTaskID: watchedPrefix + task, Status: status}
}

func stepCompleted(e event.Event, d event.StepCompletedData) []wire.Frame {
	c := step(e, d.RunID, d.StepID, event.TaskEndCompleted)
	c.Result = quoted(d.Output)
	return frames(wire.ChildTaskStatus, "", c)
}

func stepFailed(e event.Event, d event.StepFailedData) []wire.Frame {
	c := step(e, d.RunID, d.StepID, event.TaskEndFailed)
	c.Code = first(d.Code, string(fault.Internal))
	c.Error = first(d.Message, fault.Lookup(fault.Code(c.Code)).Message)
	return frames(wire.ChildTaskStatus, "", c)
}

func stepCancelled(e event.Event, d event.StepCancelledData) []wire.Frame {
	c := step(e, d.RunID, d.StepID, event.TaskEndCancelled)
	c.Error = first(d.Reason, "The task was cancelled.")
	return frames(wire.ChildTaskStatus, "", c)
}

// counts says how far the tasks of a run are.
type counts struct {
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
	Total     int `json:"total"`
}

func runProgressed(e event.Event, d event.RunProgressedData) []wire.Frame {
	return tell(e, d.RunID, "progress", levelInfo, first(d.Title, d.StepID, "progress")+": "+d.Status,
		counts{Completed: d.Completed, Failed: d.Failed, Cancelled: d.Cancelled, Total: d.Total})
}

func aggregateCompleted(e event.Event, d event.AggregateCompletedData) []wire.Frame {
	return tell(e, d.RunID, notifyStep, levelInfo, d.Result, nil)
}

// watchedTask shows what an agent of the swarm is asked.
func watchedTask(e event.Event, d event.TaskCreatedData) []wire.Frame {
	return frames(wire.TaskCreateResponse, "", wire.TaskCreatedContent{
		TaskID: d.TaskID, AgentID: first(d.AgentID, d.WantedID), AgentName: first(d.AgentName, d.WantedName),
		Status: statusCreated, CreatedAt: wire.Stamp(e.Time), Message: first(narrate.Plain(d.Data), d.TaskType),
	})
}

// watchedMessage shows what an agent of the swarm was told.
func watchedMessage(e event.Event, d event.TaskMessagedData) []wire.Frame {
	n := notification(e, d.TaskHead)
	n.NotificationType, n.Level, n.Message = notifyInfo, levelInfo, quoted("The agent was told: "+narrate.Plain(d.Message))
	return frames(wire.TaskNotification, "", n)
}
