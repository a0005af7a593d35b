package task

import (
	"context"
	"errors"
	"fmt"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/ledger"
)

// dispatcher delivers tasks to their agents, and tells agents what happens in them.
type dispatcher struct {
	*base

	notifier *notifier
}

// deliver delivers the task to its agent. If the gateway does not confirm, the task is released,
// unless the agent may still reconnect.
func (d *dispatcher) deliver(ctx context.Context, h *ledger.Log[life], _ cmd.Command) error {
	l := h.State()
	a := l.Undelivered()
	if a == nil || h.Outbox.Has(attemptID(a)) {
		return nil
	}
	via, err := d.say(ctx, h, fmt.Sprintf("assigned.%d", a.Attempt), *a)
	for _, m := range l.Mail() {
		if err != nil {
			break
		}
		_, err = d.say(ctx, h, m.MessageID+".mail", m)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errAway) && d.registry.Away(h.Ref.Tenant, a.AgentID):
		return nil
	case err != nil:
		d.deps.Logger.Debug().Err(err).Str("task", a.TaskID).Str("agent", a.AgentID).Msg("failed to deliver task")
		h.Outbox.Done(attemptID(a))
		return d.sendTo(ctx, h, gone(place{task: a.TaskID, agent: a.AgentID, attempt: a.Attempt}, notDelivered))
	}
	l.withoutMail()
	h.Outbox.Done(attemptID(a))
	return d.sendTo(ctx, h, cmd.Command{
		ID: fmt.Sprintf("%s.%d", assignment.Delivered, a.Attempt), Verb: cmd.ReportTask,
		Data: encode(cmd.TaskReport{TaskID: a.TaskID, AgentID: a.AgentID, Attempt: a.Attempt, Status: assignment.Delivered, Connection: via}),
	})
}

func attemptID(a *event.TaskAssignedData) string { return fmt.Sprintf("assigned.%d", a.Attempt) }

// say sends the task's agent a direct message, and returns the connection that took it.
func (d *dispatcher) say(ctx context.Context, h *ledger.Log[life], eventID string, data event.Data) (string, error) {
	e, err := event.New(h.Ref, eventID, source, d.cfg.Now(), data)
	if err != nil {
		return "", err
	}
	return d.notifier.say(ctx, h.Ref.Tenant, h.State().Head().AgentID, e)
}

// converse tells agents about new events. It keeps those that the holder of the task has to know
// until the holder is connected.
func (d *dispatcher) converse(ctx context.Context, h *ledger.Log[life], _ cmd.Command) error {
	l := h.State()
	if len(l.outbox) == 0 {
		return nil
	}
	if err := d.recall(ctx, h); err != nil {
		return err
	}
	said := uint64(0)
	for len(l.outbox) > 0 {
		n := l.outbox[0]
		switch {
		case !lasting[n.event.Type]:
			d.notifier.mention(h.Ref.Tenant, n.to, n.event)
		case n.event.Sequence <= l.told:
		case l.Undelivered() != nil && !h.Outbox.Has(attemptID(l.Undelivered())):
			return nil // first the task
		default:
			if _, err := d.notifier.say(ctx, h.Ref.Tenant, n.to, n.event); err != nil {
				d.deps.Logger.Debug().Err(err).Str("task", l.Head().TaskID).Str("agent", n.to).Msg("agent notification will be retried")
				return d.remember(ctx, h, said)
			}
			said = n.event.Sequence
			l.told = said
		}
		l.outbox = l.outbox[1:]
	}
	return d.remember(ctx, h, said)
}

// remember notes the last event that the agent was told, for the next process that handles the
// task.
func (d *dispatcher) remember(ctx context.Context, h *ledger.Log[life], said uint64) error {
	if agent := h.State().Holder(); said > 0 && agent != "" {
		return d.acks.Put(ctx, h.Ref, id.EntityFromExternal(agent), said)
	}
	return nil
}

// recall reads the last event that the agent was told, if this process does not know it. It treats
// notifications before that event as told; they are not repeated.
func (d *dispatcher) recall(ctx context.Context, h *ledger.Log[life]) error {
	l := h.State()
	if l.asked {
		return nil
	}
	if agent := l.Holder(); agent != "" && l.owed() {
		told, err := d.acks.Get(ctx, h.Ref, id.EntityFromExternal(agent))
		if err != nil {
			return err
		}
		l.told = max(l.told, told)
	}
	if n := len(l.outbox); n > 0 {
		last := l.outbox[n-1].event.Sequence
		l.keep(func(n news) bool { return n.event.Type != event.CallNotified || n.event.Sequence == last })
	}
	l.asked = true
	return nil
}
