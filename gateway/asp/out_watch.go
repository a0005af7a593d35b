package asp

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/internal/eventdata"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Types of notifications of watched runs, and the level of an error.
const (
	notifyInfo  = "info"
	notifyError = "error"
	levelError  = "error"
)

// msPerSecond turns the unit of questions into that of frames.
const msPerSecond = 1000

// isWatched reports whether an event is of a log that is watched, and not of the
// client's own. Direct messages are of no log.
func isWatched(e event.Event) bool {
	return e.Sequence > 0 && !strings.Contains(e.Subject, "."+string(id.KindInbox)+".")
}

// watchedTasks is the table of what a client is shown of a task of the swarm that it watches: the frames of its own tasks,
// but the task is marked, no request is answered, and a child is shown as any other task.
func watchedTasks() map[event.Type]writer {
	out := clientEvents(Settings{})
	maps.DeleteFunc(out, func(kind event.Type, _ writer) bool { return !ofTask(kind) })
	out[event.TaskCreated] = with(watchedTask)
	out[event.TaskMessaged] = with(watchedMessage)
	for kind, write := range out {
		out[kind] = func(e event.Event) ([]wire.Frame, error) {
			e, err := marked(e)
			if err != nil {
				return nil, err
			}
			return write(e)
		}
	}
	return out
}

// ofTask reports whether events of the type are of a task of the swarm.
func ofTask(kind event.Type) bool {
	of, _, _ := strings.Cut(string(kind), ".")
	return of == "task" || of == "child" || of == "call"
}

// marked marks the tasks that an event is about.
func marked(e event.Event) (event.Event, error) {
	var data map[string]json.RawMessage
	if err := eventdata.Into(e, &data); err != nil {
		return e, err
	}
	for _, name := range []string{"task_id", "child_id"} {
		if task, ok := strict.Text(data[name]); ok {
			data[name] = quoted(watchedPrefix + task)
		}
	}
	delete(data, "request_id")
	delete(data, "parent_id")
	e.Data = strict.Encoded(data)
	return e, nil
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

// neutral writes the neutral form of events that people should know. A run is a task, whose answer or failure is its end.
func neutral(e event.Event) ([]wire.Frame, error) {
	n, err := narrate.Of(e)
	if err != nil || n.Detail {
		return nil, err
	}
	switch n.Kind {
	case narrate.Message:
		return frames(wire.TaskCreateResponse, "", wire.TaskCreatedContent{
			TaskID: taskOf(e, n.Run), AgentID: e.Via.AgentID, AgentName: e.Via.Route, Status: statusCreated, CreatedAt: wire.Stamp(e.Time), Message: n.Whole(),
		}), nil
	case narrate.Note:
		return tell(e, n, notifyInfo, levelInfo, nil), nil
	case narrate.Failure:
		if n.Ends {
			return ended(e, n), nil
		}
		return tell(e, n, notifyError, levelError, failing{n.Code}), nil
	case narrate.Answer:
		return ended(e, n), nil
	case narrate.Question:
		return question(e, n), nil
	case narrate.Silent:
	}
	return nil, nil
}

// failing is what explains a failure.
type failing struct {
	Code string `json:"code"`
}

// tell is a notification about a run, which data explain.
func tell(e event.Event, n narrate.Narration, kind, level string, data any) []wire.Frame {
	c := wire.TaskNotificationContent{
		TaskID: taskOf(e, n.Run), AgentID: e.Via.AgentID, AgentName: e.Via.Route, NotificationType: kind,
		Message: quoted(n.Whole()), Level: level, Timestamp: wire.Stamp(e.Time),
	}
	if data != nil {
		c.Data = strict.Encoded(data)
	}
	return frames(wire.TaskNotification, "", c)
}

// ended is the end of a run.
func ended(e event.Event, n narrate.Narration) []wire.Frame {
	end := wire.TaskResultContent{
		TaskID: taskOf(e, n.Run), AgentID: e.Via.AgentID, AgentName: e.Via.Route, Status: event.TaskEndCompleted, CompletedAt: wire.Stamp(e.Time),
	}
	switch {
	case n.Kind == narrate.Answer:
		end.Result = quoted(n.Whole())
	case n.Code == string(fault.RunCancelled):
		end.Status, end.Code, end.Error = event.TaskEndCancelled, n.Code, n.Whole()
	default:
		end.Status, end.Code, end.Error = event.TaskEndFailed, n.Code, n.Whole()
	}
	return frames(wire.TaskResult, "", end)
}

// question becomes a task of its own, a child of the run: an answer to that task answers the question. Only agents take other answers than the two.
func question(e event.Event, n narrate.Narration) []wire.Frame {
	options := n.Ask.Options
	if n.Ask.Scope != narrate.ScopeTask {
		options = strict.Encoded([]string{event.DecisionApprove, event.DecisionReject})
	}
	return frames(wire.TaskRequestMessage, "", wire.TaskQuestionContent{
		TaskID: watchedPrefix + n.Ask.ID, ParentTaskID: taskOf(e, n.Run), AgentID: e.Via.AgentID, AgentName: first(e.Via.Route, n.By),
		MessageType: questionType, Message: quoted(n.Whole()), Options: options,
		Timeout: int64(n.Ask.TimeoutSeconds) * msPerSecond, InputID: n.Ask.ID,
	})
}

// questionType is the type of a question.
const questionType = "input_request"

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
