package task

import (
	"cmp"
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/quota"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/ledger"
)

// intake creates tasks: those that clients submit, and those that agents ask for.
type intake struct {
	*base

	records *records
	quota   quota.Entities // of open tasks
}

// maxTask bounds a task, so that it fits into an event (256 KiB) with the service's additions.
const maxTask = 250 << 10

// submit creates a task if the registry knows an agent for it, live or not. After it returns, the
// task reaches its end also if processes die.
func (it *intake) submit(ctx context.Context, in cmd.ParticipantRequest) (cmd.TaskView, error) {
	d, err := data[cmd.NewTask](in)
	if err != nil {
		return cmd.TaskView{}, err
	}
	if d.AgentID == "" && d.AgentName == "" && len(d.Capabilities) == 0 {
		return cmd.TaskView{}, fault.Newf(fault.InvalidField, "Specify the agent by its id, its name or its capabilities.").At("agentName")
	}
	if len(in.Data) > maxTask {
		return cmd.TaskView{}, fault.New(fault.MessageTooBig)
	}
	d.Owner = "" // of jobs
	switch in.Kind {
	case cmd.ParticipantClient:
		d.ClientID = in.ID
	case cmd.ParticipantAgent:
		d.AskedBy(in.ID, in.Name)
	}
	if d.TaskID == "" {
		d.TaskID = uuid.NewString()
	} else if v, before, err := it.before(ctx, in, d); before || err != nil {
		return v, err
	}
	if !it.wanted(in.Tenant, d) {
		return cmd.TaskView{}, fault.New(fault.AgentNotFound)
	}
	if d.RequestID == "" {
		d.RequestID = in.RequestID
	}
	d.Seen = it.deps.Directory.Revision()
	if err := it.quota.Hold(ctx, in.Tenant, in.Principal, id.EntityFromExternal(d.TaskID)); err != nil {
		return cmd.TaskView{}, err
	}
	err = it.send(ctx, cmd.Command{
		ID: createID, Service: cmd.Task, Verb: cmd.CreateTask, Tenant: in.Tenant, Key: id.EntityFromExternal(d.TaskID),
		Principal: in.Principal, ReplyTo: in.ReplyTo, Data: encode(d),
	})
	if err != nil {
		return cmd.TaskView{}, err
	}
	head := event.TaskHead{TaskID: d.TaskID, RequestID: d.RequestID, ClientID: d.ClientID, ParentID: d.ParentID}
	return cmd.TaskView{TaskHead: head, Status: assignment.StatusCreated, CreatedAt: it.cfg.Now().UTC()}, nil
}

// retry submits a task like one that has ended without success. The new task names the old one. It belongs to no run, no
// client and no other task, even if the old one did: these have got its end.
func (it *intake) retry(ctx context.Context, in cmd.ParticipantRequest) (cmd.TaskView, error) {
	d, err := data[cmd.TaskRetry](in)
	if err != nil {
		return cmd.TaskView{}, err
	}
	old, err := it.records.record(ctx, taskLog(in.Tenant, d.TaskID))
	switch {
	case err != nil:
		return cmd.TaskView{}, err
	case !it.records.shows(in.Tenant, old.Task.Principal, in.Principal, in.All):
		return cmd.TaskView{}, fault.New(fault.TaskNotFound)
	case old.EndedAt.IsZero():
		return cmd.TaskView{}, fault.New(fault.TaskOpen)
	case old.Status == event.TaskEndCompleted:
		return cmd.TaskView{}, fault.Newf(fault.TaskFinished, "This task has completed and cannot be repeated. Submit a new one.")
	}
	t := old.Task
	n := cmd.NewTask{
		TaskID: d.NewID, AgentID: t.WantedID, AgentName: t.WantedName, Capabilities: t.Capabilities, TaskType: t.TaskType,
		Data: t.Data, DataRef: t.DataRef, QueueMS: t.QueueMS, TimeoutMS: t.TimeoutMS, RetryOf: t.TaskID,
	}
	// An object belongs to one log, and goes with it.
	if err := it.payloads.Fill(ctx, in.Tenant, &n); err != nil {
		return cmd.TaskView{}, err
	}
	if _, err := it.payloads.Shrink(ctx, taskLog(in.Tenant, n.TaskID), &n); err != nil {
		return cmd.TaskView{}, err
	}
	in.Data = encode(n)
	return it.submit(ctx, in)
}

// before returns the task that an earlier delivery of the request has created.
func (it *intake) before(ctx context.Context, in cmd.ParticipantRequest, d cmd.NewTask) (cmd.TaskView, bool, error) {
	st, err := ledger.Fold(ctx, it.deps.Log, taskLog(in.Tenant, d.TaskID), (*assignment.State).Apply)
	if err != nil || st.Created.IsZero() || st.Task().Principal != in.Principal || st.Task().ClientID != d.ClientID || st.Task().AskerID != d.AskerID {
		return cmd.TaskView{}, false, err
	}
	v := st.View()
	v.Before = true
	v.AgentID, v.AgentName = cmp.Or(v.AgentID, st.Task().ExpectedID, d.AgentID), cmp.Or(v.AgentName, st.Task().ExpectedName, d.AgentName)
	return v, true, nil
}

// wanted reports whether some agent that is known may be given the task.
func (it *intake) wanted(t id.Tenant, d cmd.NewTask) bool {
	want := event.TaskCreatedData{WantedID: d.AgentID, WantedName: d.AgentName, Capabilities: d.Capabilities}
	return assignment.Known(want, it.registry.Agents(t))
}

// createID is the id of the command that creates a task. A task has one.
const createID = "create"

// create creates the child that a command requests if it was accepted, or the task without a
// parent that it has become.
func (it *intake) create(ctx context.Context, h *ledger.Log[life], c cmd.Command) error {
	if c.Verb != cmd.SpawnTask {
		return nil
	}
	var d cmd.SpawnChild
	if err := c.Decode(&d); err != nil {
		return err
	}
	principal := h.State().Task().Principal
	commandID := createID
	n, ok := h.State().Child(d)
	if !ok {
		n, ok = h.State().Apart(d)
		principal, commandID = c.Principal, createID+"."+c.ID // asked for again, it answers again
		if ok {
			var err error
			if ok, err = it.holds(ctx, h.Ref, c, n); err != nil {
				return err
			}
		}
	}
	if !ok {
		return nil
	}
	return it.sendTo(ctx, h, cmd.Command{
		ID: commandID, Verb: cmd.CreateTask, Key: id.EntityFromExternal(n.TaskID), Principal: principal, Data: encode(n),
	})
}

// holds takes a place of the quota for a task without a parent, unless the task exists. The sender of a refused one is
// told.
func (it *intake) holds(ctx context.Context, ref subject.Log, c cmd.Command, n cmd.NewTask) (bool, error) {
	task := subject.Log{Tenant: ref.Tenant, Kind: id.KindTask, Entity: id.EntityFromExternal(n.TaskID)}
	last, err := it.deps.Log.Last(ctx, task)
	switch {
	case errors.Is(err, eventlog.ErrDeleted):
		return false, nil
	case err != nil || last.Seq > 0:
		return err == nil, err
	}
	err = it.quota.Hold(ctx, task.Tenant, c.Principal, task.Entity)
	f, refused := errors.AsType[*fault.Fault](err)
	if !refused || f.Code != fault.QuotaExceeded {
		return err == nil, err
	}
	it.ledger.Direct(ref, c, event.CommandRefusedData{CommandID: c.ID, Code: string(f.Code), Message: f.Message, Field: f.Field})
	return false, nil
}
