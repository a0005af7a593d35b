package task

import (
	"cmp"
	"context"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger"
)

// askers tells the agents and tasks that asked for a task what became of it.
type askers struct {
	*base

	notifier *notifier
}

// askerTold is the mark in h.Outbox that the asking agent knows the end, or can no longer be told.
const askerTold = "asker.told"

// tell tells the agent that asked for the task outside of any other that it was
// accepted and how it has ended. The end waits for an agent that is away for a moment; one
// that has left is not told.
func (a *askers) tell(ctx context.Context, h *ledger.Log[life], c cmd.Command) error {
	t, end := h.State().Task(), h.State().End()
	if t.AskerID == "" {
		return nil
	}
	if c.Verb == cmd.CreateTask {
		a.mention(h, "accepted", event.ChildCreatedData{
			ChildID: t.TaskID, ChildRequestID: t.RequestID, ChildAgentID: cmp.Or(t.ExpectedID, t.WantedID), ChildAgentName: cmp.Or(t.ExpectedName, t.WantedName), TaskType: t.TaskType,
		})
	}
	if end == nil {
		return nil
	}
	ended := event.ChildFinishedData{ChildID: t.TaskID, Status: end.Status, Result: end.Result, ResultRef: end.ResultRef, Code: end.Code, Error: end.Error}
	if h.Outbox.Has(askerTold) {
		if c.Verb == cmd.CreateTask { // it asks again
			a.mention(h, "ended", ended)
		}
		return nil
	}
	mark := askerMark(t.AskerID)
	told, err := a.acks.Get(ctx, h.Ref, mark)
	switch {
	case err != nil:
		return err
	case told > 0 && c.Verb == cmd.CreateTask:
		a.mention(h, "ended", ended)
	case told == 0:
		e, err := event.New(h.Ref, "asker.ended", source, a.cfg.Now(), ended)
		if err != nil {
			return err
		}
		if _, err = a.notifier.say(ctx, h.Ref.Tenant, t.AskerID, e); err != nil && a.there(h.Ref, t.AskerID) {
			a.deps.Logger.Debug().Err(err).Str("task", t.TaskID).Str("agent", t.AskerID).Msg("notification of asking agent will be retried")
			return context.Cause(ctx)
		}
		if err := a.acks.Put(ctx, h.Ref, mark, h.Cursor().Seq); err != nil {
			return err
		}
	}
	h.Outbox.Done(askerTold)
	return nil
}

// owed reports whether the end of the task is still to be told.
func (a *askers) owed(h *ledger.Log[life]) bool {
	return h.State().Done() && h.State().Task().AskerID != "" && !h.Outbox.Has(askerTold)
}

// there reports whether an agent has a connection, or its place is kept for it.
func (a *askers) there(log subject.Log, agent string) bool {
	_, there := a.registry.Agent(log.Tenant, agent)
	return there
}

func (a *askers) mention(h *ledger.Log[life], eventID string, data event.Data) {
	e, err := event.New(h.Ref, "asker."+eventID, source, a.cfg.Now(), data)
	if err != nil {
		a.deps.Logger.Error().Err(err).Str("task", h.Ref.String()).Msg("failed to encode event for asking agent")
		return
	}
	a.notifier.mention(h.Ref.Tenant, h.State().Task().AskerID, e)
}

// askerMark is the key of the note that the asking agent was told. No agent has this id.
func askerMark(agent string) id.Entity { return id.EntityFromExternal("asker " + agent) }

// family cancels the children that no task waits for, and tells the parent of a child's
// end.
func (a *askers) family(ctx context.Context, h *ledger.Log[life], _ cmd.Command) error {
	l := h.State()
	for _, child := range l.Orphans() {
		stop := cmd.Command{
			ID: "orphan", Verb: cmd.CancelTask, Key: id.EntityFromExternal(child),
			Data: encode(cmd.CancelTaskData{TaskID: child, Reason: cancelledWith}),
		}
		if err := a.once(ctx, h, "orphan."+child, stop); err != nil {
			return err
		}
	}
	parent, end := l.Task().ParentID, l.End()
	if parent == "" || end == nil {
		return nil
	}
	return a.once(ctx, h, "ended", cmd.Command{
		ID: "end-child." + h.Ref.Entity.String(), Verb: cmd.EndChild, Key: id.EntityFromExternal(parent),
		Data: encode(event.ChildFinishedData{
			ChildID: l.Head().TaskID, Status: end.Status, Result: end.Result, ResultRef: end.ResultRef, Code: end.Code, Error: end.Error,
		}),
	})
}
