package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/gateway/api/request"
	"github.com/waggle-dev/waggle/gateway/api/respond"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/eventlog"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// defaultTasks and maxTasks bound the tasks of one answer, each of which is folded from its log.
	defaultTasks = 50
	maxTasks     = 200
	// maxTaskEvents bounds the events of one answer, beside answer.MaxPage: few tasks have as many.
	maxTaskEvents = 200
	// maxCancel bounds the body of a cancellation, which is at most a reason.
	maxCancel = 16 << 10
	// maxTask bounds the bodies with data for agents, within the gateway's own limit. Parts too large for an event are stored apart.
	maxTask = 1 << 20
)

// listParticipants returns the handler of a list that the task service knows under the verb.
func listParticipants(verb id.Name, answer func([]cmd.Participant, string) any) func(*API) respond.Handler {
	return func(a *API) respond.Handler {
		return func(r *http.Request, who *edge.Client) (any, error) {
			limit, err := request.Number(r, "limit", request.DefaultItems, request.MaxItems)
			if err != nil {
				return nil, err
			}
			q := r.URL.Query()
			f := cmd.ParticipantFilter{
				Status: q.Get("status"), Capabilities: q["capability"], Name: q.Get("name"), Prefix: q.Get("prefix"), Type: q.Get("type"), After: q.Get("before"),
			}
			page, err := a.participants(r, who, verb, f, limit)
			if err != nil {
				return nil, err
			}
			return answer(page.Participants, page.Next()), nil
		}
	}
}

// participants returns a page of participants. An answer of the service holds as many as fit into a message of the bus.
func (a *API) participants(r *http.Request, who *edge.Client, verb id.Name, f cmd.ParticipantFilter, limit int) (cmd.ParticipantList, error) {
	p := who.Principal()
	page, room := cmd.ParticipantList{Participants: []cmd.Participant{}}, answer.MaxPage
	for {
		f.Limit = limit - len(page.Participants)
		filter, err := json.Marshal(f)
		if err != nil {
			return page, err
		}
		part, err := ask[cmd.ParticipantList](r, who, cmd.Task, verb, cmd.ParticipantRequest{Tenant: p.Tenant, Principal: p.Subject, Data: filter})
		if f, ok := errors.AsType[*fault.Fault](err); ok && f.Field == "after" {
			return page, f.At("before")
		}
		if err != nil {
			return page, err
		}
		page.Participants, page.More = append(page.Participants, part.Participants...), part.More
		room -= int(a.cfg.Edge.Bus.NATS().MaxPayload()) // of the largest answer
		if f.After = part.Next(); f.After == "" || len(page.Participants) >= limit || room <= 0 {
			return page, nil
		}
	}
}

// listTasks returns a page of tasks. An answer of the service holds as many as fit into a message of the bus.
func (a *API) listTasks(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	limit, err := request.Number(r, "limit", defaultTasks, maxTasks)
	if err != nil {
		return nil, err
	}
	page, room := wire.TaskPage{Tasks: []wire.TaskSummary{}}, answer.MaxPage
	in := cmd.TaskListRequest{Tenant: p.Tenant, Principal: p.Subject, All: who.SeesAll(), Before: r.URL.Query().Get("before")}
	for {
		in.Limit = limit - len(page.Tasks)
		part, err := ask[wire.TaskPage](r, who, cmd.Task, cmd.ListTasks, in)
		if err != nil {
			return nil, err
		}
		page.Tasks = append(page.Tasks, part.Tasks...)
		room -= int(a.cfg.Edge.Bus.NATS().MaxPayload()) // of the largest answer
		if !part.More || len(page.Tasks) >= limit || part.Next == in.Before || room <= 0 {
			page.Next, page.More = part.Next, part.More
			return page, nil
		}
		in.Before = part.Next
	}
}

// taskPatience bounds the wait for the log of a new task.
const taskPatience = 5 * time.Second

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

// createTask gives an agent of the swarm a task, as a client of the swarm does.
func (a *API) createTask(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	var b wire.NewTask
	if err := request.Decode(r, maxTask, &b, true); err != nil {
		return nil, err
	}
	if err := checkTimes(b); err != nil {
		return nil, err
	}
	task, err := commandID(b.ID, "task", p.Subject)
	if err != nil {
		return nil, err
	}
	of := cmd.NewTask{
		TaskID: task, AgentID: b.AgentID, AgentName: b.AgentName, Capabilities: b.Capabilities, TaskType: b.TaskType, Data: b.Data,
		QueueMS: b.QueueMS, TimeoutMS: b.TimeoutMS,
	}
	if _, err := a.payloads.Shrink(r.Context(), subject.Log{Tenant: p.Tenant, Kind: id.KindTask, Entity: id.EntityFromExternal(task)}, &of); err != nil {
		return nil, err
	}
	data, err := plainjson.Marshal(of)
	if err != nil {
		return nil, err
	}
	return a.newTask(r, who, cmd.Submit, cmd.ParticipantRequest{Tenant: p.Tenant, Principal: p.Subject, Data: data})
}

// newTask has the service make a task, and waits until its log begins, so that the address in the answer is there. The task is safe
// before that: a service that takes long does not fail the request.
func (a *API) newTask(r *http.Request, who *edge.Client, verb id.Name, in cmd.ParticipantRequest) (any, error) {
	v, err := change[cmd.TaskView](r, who, cmd.Task, verb, in)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), taskPatience)
	defer cancel()
	for _, err := range a.cfg.Edge.Log.Tail(ctx, subject.Log{Tenant: in.Tenant, Kind: id.KindTask, Entity: id.EntityFromExternal(v.TaskID)}, eventlog.Cursor{}) {
		if err != nil {
			a.cfg.Edge.Logger.Debug().Err(err).Str("task", v.TaskID).Msg("task log not visible yet")
		}
		break
	}
	return respond.Created{Location: Prefix + "/tasks/" + v.TaskID, Answer: wire.TaskName{TaskID: v.TaskID}}, nil
}

// showTask returns a task with its newest events. The task and its result are whole; events are as they are in the log,
// and refer to stored payloads.
func (a *API) showTask(r *http.Request, who *edge.Client) (any, error) {
	log, err := taskLog(r, who)
	if err != nil {
		return nil, err
	}
	d := wire.TaskDetail{Events: []json.RawMessage{}}
	if d.TaskRecord, err = a.task(r, who, log); err != nil {
		return nil, err
	}
	size := 0
	err = a.cfg.Edge.Log.Read(r.Context(), log, eventlog.Cursor{Seq: d.LastSeq - min(d.LastSeq, maxTaskEvents)}, func(e *eventlog.Entry) error {
		if e.Sequence > d.LastSeq {
			return errPageFull // younger than the record
		}
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
	case err != nil && !errors.Is(err, errPageFull):
		return nil, err
	}
	err = errors.Join(a.payloads.Show(r.Context(), log.Tenant, &d.TaskView), a.payloads.Show(r.Context(), log.Tenant, &d.Task))
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (a *API) task(r *http.Request, who *edge.Client, log subject.Log) (wire.TaskRecord, error) {
	p := who.Principal()
	in := cmd.ReadTaskRequest{Tenant: log.Tenant, Principal: p.Subject, All: who.SeesAll(), Task: log.Entity}
	return ask[wire.TaskRecord](r, who, cmd.Task, cmd.ReadTask, in)
}

// cancelTask stops a task, soon after the answer.
func (a *API) cancelTask(r *http.Request, who *edge.Client) (any, error) {
	log, err := taskLog(r, who)
	if err != nil {
		return nil, err
	}
	t, err := a.task(r, who, log)
	switch {
	case err != nil:
		return nil, err
	case !t.EndedAt.IsZero():
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
	data := cmd.CancelTaskData{TaskID: t.TaskID, Reason: in.Reason}
	return send(r, who, cmd.Command{Service: cmd.Task, Verb: cmd.CancelTask, Key: log.Entity}, data)
}

// typeMessage is the type of a message to a task's agent in the Agent Swarm Protocol.
const typeMessage = "client.message"

// messageTask tells the agent of a task something. If the agent asks, that is the answer.
func (a *API) messageTask(r *http.Request, who *edge.Client) (any, error) {
	p := who.Principal()
	log, err := taskLog(r, who)
	if err != nil {
		return nil, err
	}
	t, err := a.task(r, who, log)
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
	if c.ID, err = commandID(b.ID, "message", log.Entity.String(), p.Subject); err != nil {
		return nil, err
	}
	said := cmd.TaskMessage{TaskID: t.TaskID, MessageType: typeMessage, Message: b.Message}
	if _, err := a.payloads.Shrink(r.Context(), log, &said); err != nil {
		return nil, err
	}
	e, err := act(r, who, log, c, said, func(e event.Event) bool { return cameOf(e, c.ID) })
	if err != nil {
		return nil, err
	}
	return respond.Accepted{Answer: wire.Accepted{Accepted: true, CommandID: c.ID, MessageID: c.ID, Seq: e.Sequence}}, nil
}

// taskLog returns the log that the request names, within the principal's tenant.
func taskLog(r *http.Request, who *edge.Client) (subject.Log, error) {
	return owned(who, id.KindTask, id.EntityFromExternal(r.PathValue("id")))
}
