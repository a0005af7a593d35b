package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api/openapi"
	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/eventlog"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// tasks are what agents of the swarm are given to do.
type tasks struct{ *parts }

const (
	// maxTaskEvents bounds the events of one answer, beside answer.MaxPage: few tasks have as many.
	maxTaskEvents = 200
	// maxCancel bounds the body of a cancellation, which is at most a reason.
	maxCancel = 16 << 10
	// maxTask bounds the bodies with data for agents, within the gateway's own limit. Parts too large for an event are stored apart.
	maxTask = 1 << 20
)

// taskLimit is the number of tasks of a page, each of which is folded from its log.
var taskLimit = limit("Tasks", 50, 200)

func (t tasks) routes() []Route {
	return []Route{
		{
			Method: "GET", Path: "/tasks", ID: "listTasks", Tag: "tasks", Summary: "List tasks, the newest change first.",
			Query:   []openapi.Parameter{before, taskLimit.Parameter},
			Answers: json200("A page of tasks. Stored results are references.", wire.TaskPage{}), Faults: []fault.Code{fault.InvalidField},
			Handler: t.server.Serve(t.list),
		},
		{
			Method: "POST", Path: "/tasks", ID: "createTask", Tag: "tasks", Summary: "Give an agent of the swarm a task.",
			Body: wire.NewTask{}, Required: true, Example: `{"id":"t1","agent_name":"shouter","data":{"text":"hello"},"timeout_ms":60000}`,
			Answers: []openapi.Answer{{Status: http.StatusCreated, About: "The task. Location is its path. A repeat with the same id has the same response.", Type: wire.TaskName{}}},
			Faults:  []fault.Code{fault.BadJSON, fault.InvalidField, fault.MessageTooBig, fault.AgentNotFound}, Handler: t.server.Serve(t.create),
		},
		{
			Method: "GET", Path: "/tasks/{id}", ID: "showTask", Tag: "tasks", Summary: "Show a task with its newest 200 events.",
			Answers: json200("The task.", wire.TaskDetail{}), Faults: []fault.Code{fault.TaskNotFound, fault.SessionDeleted, fault.PayloadLost},
			Handler: t.server.Serve(t.show),
		},
		{
			Method: "POST", Path: "/tasks/{id}/cancel", ID: "cancelTask", Tag: "tasks", Summary: "Cancel a task.",
			Body: wire.CancelTask{}, Example: `{"reason":"not needed any more"}`, Answers: accepted(),
			Faults: []fault.Code{fault.TaskNotFound, fault.SessionDeleted, fault.TaskFinished, fault.BadJSON}, Handler: t.server.Serve(t.cancel),
		},
		{
			Method: "POST", Path: "/tasks/{id}/messages", ID: "messageTask", Tag: "tasks", Summary: "Tell the agent of a task something, or answer its question.",
			Body: wire.TaskMessage{}, Required: true, Example: `{"id":"m1","message":{"text":"and louder"}}`, Answers: taken("The message is in the log of the task."),
			Faults: []fault.Code{
				fault.TaskNotFound, fault.SessionDeleted, fault.TaskFinished, fault.BadJSON, fault.InvalidField, fault.MessageTooBig, fault.Draining,
			},
			Handler: t.server.Serve(t.message),
		},
		{
			Method: "POST", Path: "/tasks/{id}/retry", ID: "retryTask", Tag: "tasks", Summary: "Submit a task that ended without success again, as a new one.",
			Body: wire.RetryTask{}, Example: `{"id":"again-1"}`,
			Answers: []openapi.Answer{{Status: http.StatusCreated, About: "The new task, whose member retry_of names the old one. Location is its path. A repeat with the same id has the same response.", Type: wire.TaskName{}}},
			Faults: []fault.Code{
				fault.TaskNotFound, fault.SessionDeleted, fault.TaskOpen, fault.TaskFinished, fault.AgentNotFound, fault.PayloadLost, fault.QuotaExceeded,
				fault.BadJSON, fault.InvalidField, fault.MessageTooBig,
			},
			Handler: t.server.Serve(t.retry),
		},
	}
}

// list returns a page of tasks.
func (t tasks) list(r *http.Request, who *edge.Client) (any, error) {
	p, q := who.Principal(), queryOf(r)
	limit := q.count(taskLimit)
	if q.err != nil {
		return nil, q.err
	}
	in := cmd.TaskListRequest{Tenant: p.Tenant, Principal: p.Subject, All: who.SeesAll()}
	all, next, err := gathered(t.parts, q.Get(before.Name), limit, func(from string, limit int) ([]wire.TaskSummary, string, error) {
		in.Before, in.Limit = from, limit
		part, err := ask[wire.TaskPage](r, who, cmd.Task, cmd.ListTasks, in)
		return part.Tasks, part.Next, err
	})
	if err != nil {
		return nil, err
	}
	return wire.TaskPage{Tasks: all, Next: next, More: next != ""}, nil
}

// create gives an agent of the swarm a task, as a client of the swarm does.
func (t tasks) create(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	var b wire.NewTask
	if err := request.Decode(r, maxTask, &b, true); err != nil {
		return nil, err
	}
	if err := checkTimes(b); err != nil {
		return nil, err
	}
	task, err := edge.CommandID(b.ID, "task", p.Subject)
	if err != nil {
		return nil, err
	}
	of := cmd.NewTask{
		TaskID: task, AgentID: b.AgentID, AgentName: b.AgentName, Capabilities: b.Capabilities, TaskType: b.TaskType, Data: b.Data,
		QueueMS: b.QueueMS, TimeoutMS: b.TimeoutMS,
	}
	if _, err := t.payloads.Shrink(r.Context(), subject.Log{Tenant: p.Tenant, Kind: id.KindTask, Entity: id.EntityFromExternal(task)}, &of); err != nil {
		return nil, err
	}
	data, err := plainjson.Marshal(of)
	if err != nil {
		return nil, err
	}
	return t.begin(r, who, cmd.Submit, cmd.ParticipantRequest{Tenant: p.Tenant, Principal: p.Subject, Data: data})
}

// taskMaxWait bounds the wait for the log of a new task.
const taskMaxWait = 5 * time.Second

// checkTimes returns the fault of the first time of a new task that is negative.
func checkTimes(b wire.NewTask) error {
	for _, one := range []struct {
		name string
		ms   int64
	}{{"queue_ms", b.QueueMS}, {"timeout_ms", b.TimeoutMS}} {
		if one.ms < 0 {
			return fault.Newf(fault.InvalidField, "%s must not be negative.", one.name).At(one.name)
		}
	}
	return nil
}

// begin has the service make a task, and waits until its log begins, so that the address in the answer is there. The task is safe
// before that: a service that takes long does not fail the request.
func (t tasks) begin(r *http.Request, who *edge.Client, verb id.Name, in cmd.ParticipantRequest) (any, error) {
	v, err := change[cmd.TaskView](r, who, cmd.Task, verb, in)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), taskMaxWait)
	defer cancel()
	for _, err := range t.edge.Log.Tail(ctx, subject.Log{Tenant: in.Tenant, Kind: id.KindTask, Entity: id.EntityFromExternal(v.TaskID)}, eventlog.Cursor{}) {
		if err != nil {
			t.edge.Logger.Debug().Err(err).Str("task", v.TaskID).Msg("task log not visible yet")
		}
		break
	}
	return respond.Created{Location: Prefix + "/tasks/" + v.TaskID, Answer: wire.TaskName{TaskID: v.TaskID}}, nil
}

// show returns a task with its newest events. The task and its result are whole; events are as they are in the log,
// and refer to stored payloads.
func (t tasks) show(r *http.Request, who *edge.Client) (any, error) {
	log, err := taskLog(r, who)
	if err != nil {
		return nil, err
	}
	d := wire.TaskDetail{Events: []json.RawMessage{}}
	if d.TaskRecord, err = t.record(r, who, log); err != nil {
		return nil, err
	}
	size := 0
	err = stream.Read(r.Context(), t.edge.Log, log, eventlog.Cursor{Seq: d.LastSeq - min(d.LastSeq, maxTaskEvents)}, d.LastSeq, func(e *eventlog.Entry) error {
		raw := shown(e)
		d.Events = append(d.Events, raw)
		for size += len(raw); len(d.Events) > maxTaskEvents || size > answer.MaxPage && len(d.Events) > 1; {
			size -= len(d.Events[0])
			d.Events = d.Events[1:]
		}
		return nil
	})
	var cut *eventlog.TruncatedError
	switch {
	case errors.As(err, &cut):
		return nil, fault.New(fault.TaskNotFound)
	case err != nil:
		return nil, err
	}
	err = errors.Join(t.payloads.Show(r.Context(), log.Tenant, &d.TaskView), t.payloads.Show(r.Context(), log.Tenant, &d.Task))
	if err != nil {
		return nil, err
	}
	return d, nil
}

// cancel stops a task, soon after the answer.
func (t tasks) cancel(r *http.Request, who *edge.Client) (any, error) {
	log, err := taskLog(r, who)
	if err != nil {
		return nil, err
	}
	of, err := t.record(r, who, log)
	switch {
	case err != nil:
		return nil, err
	case !of.EndedAt.IsZero():
		return nil, fault.New(fault.TaskFinished)
	}
	var in wire.CancelTask
	raw, err := request.Body(r, maxCancel)
	if err != nil {
		return nil, err
	}
	if len(raw) > 0 && json.Unmarshal(raw, &in) != nil {
		return nil, fault.New(fault.BadJSON)
	}
	data := cmd.CancelTaskData{TaskID: of.TaskID, Reason: in.Reason}
	return send(r, who, cmd.Command{Service: cmd.Task, Verb: cmd.CancelTask, Key: log.Entity}, data)
}

// typeMessage is the type of a message to a task's agent in the Agent Swarm Protocol.
const typeMessage = "client.message"

// message tells the agent of a task something. If the agent asks, that is the answer.
func (t tasks) message(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	log, err := taskLog(r, who)
	if err != nil {
		return nil, err
	}
	of, err := t.record(r, who, log)
	if err != nil {
		return nil, err
	}
	var b wire.TaskMessage
	if err := request.Decode(r, maxTask, &b, true); err != nil {
		return nil, err
	}
	if len(b.Message) == 0 || string(b.Message) == "null" {
		return nil, fault.Newf(fault.InvalidField, "message must be any JSON value except null.").At("message")
	}
	c := cmd.Command{Service: cmd.Task, Verb: cmd.MessageTask, Key: log.Entity}
	if c.ID, err = edge.CommandID(b.ID, "message", log.Entity.String(), p.Subject); err != nil {
		return nil, err
	}
	said := cmd.TaskMessage{TaskID: of.TaskID, MessageType: typeMessage, Message: b.Message}
	if _, err := t.payloads.Shrink(r.Context(), log, &said); err != nil {
		return nil, err
	}
	e, err := act(r, who, log, c, said, func(e event.Event) bool { return cameOf(e, c.ID) })
	if err != nil {
		return nil, err
	}
	return respond.Accepted{Answer: wire.Accepted{Accepted: true, CommandID: c.ID, MessageID: c.ID, Seq: e.Sequence}}, nil
}

// retry submits a task that ended without success again, as a new one.
func (t tasks) retry(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	log, err := taskLog(r, who)
	if err != nil {
		return nil, err
	}
	var b wire.RetryTask
	if err := request.Decode(r, maxCancel, &b, false); err != nil {
		return nil, err
	}
	in := cmd.TaskRetry{TaskID: r.PathValue("id")}
	if in.NewID, err = edge.CommandID(b.ID, "retry", p.Subject, log.Entity.String()); err != nil {
		return nil, err
	}
	data, err := plainjson.Marshal(in)
	if err != nil {
		return nil, err
	}
	return t.begin(r, who, cmd.RetryTask, cmd.ParticipantRequest{Tenant: p.Tenant, Principal: p.Subject, All: who.SeesAll(), Data: data})
}

// record returns the task as its service knows it.
func (t tasks) record(r *http.Request, who *edge.Client, log subject.Log) (wire.TaskRecord, error) {
	p := who.Principal()
	in := cmd.ReadTaskRequest{Tenant: log.Tenant, Principal: p.Subject, All: who.SeesAll(), Task: log.Entity}
	return ask[wire.TaskRecord](r, who, cmd.Task, cmd.ReadTask, in)
}

// taskLog returns the log that the request names, within the principal's tenant.
func taskLog(r *http.Request, who *edge.Client) (subject.Log, error) {
	return owned(who, id.KindTask, id.EntityFromExternal(r.PathValue("id")))
}
