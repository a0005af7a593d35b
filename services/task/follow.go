package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/internal/eventlog"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/task/inbox"
	"github.com/waggle-dev/waggle/services/task/notifier"
)

const (
	// lookAgain is how soon a task that waits for an agent, or whose agent was not told
	// everything, is looked at again by itself: the net below the watch of the
	// directory. A task waits for 30 s, so this is six looks.
	lookAgain = 5 * time.Second
	// cancelledWith is the reason for cancelling the children of a task that has ended.
	cancelledWith = "the task that asked for it is over"
	// notDelivered is why a task is released that its agent was not handed.
	notDelivered = "not_delivered"
)

// followUp does the work that the state of a task entails. It derives all of it from the log, so
// that a redelivery after a crash completes it and a repetition does no harm. The client is told
// last: its copy marks the work as done.
func (s *Service) followUp(ctx context.Context, h *ledger.Log[life], c cmd.Command) error {
	l := h.State()
	if l.Created.IsZero() {
		return s.create(ctx, h, c)
	}
	s.locate(h)
	for _, step := range []func(context.Context, *ledger.Log[life], cmd.Command) error{
		s.dispatch, s.converse, s.create, s.family, s.tellAsker, s.call, s.askPeople, s.report, s.relay,
	} {
		if err := step(ctx, h, c); err != nil {
			return err
		}
	}
	s.locate(h)
	if l.Done() {
		if err := s.quota.Free(ctx, h.Ref.Tenant, h.Ref.Entity); err != nil {
			return err
		}
	}
	return s.SetTimer(ctx, h, s.due(h))
}

// locate notes where the task is.
func (s *Service) locate(h *ledger.Log[life]) {
	l := h.State()
	if l.Done() {
		s.index.drop(h.Ref, s.cfg.Now())
		return
	}
	s.index.put(h.Ref, place{
		task: l.Head().TaskID, agent: l.Holder(), attempt: l.Head().Attempt, seen: s.cfg.Now(),
		unsaid: l.owed(),
	})
}

// due is when the task is to be looked at again.
func (s *Service) due(h *ledger.Log[life]) time.Time {
	l := h.State()
	now := s.cfg.Now()
	due := l.Due(s.live(h.Ref.Tenant, now))
	soon := now.Add(lookAgain)
	if s.owesAsker(h) || !l.Done() && (l.Waiting() || l.owed()) && (due.IsZero() || soon.Before(due)) {
		return soon
	}
	return due
}

// dispatch delivers the task to its agent. If the gateway does not confirm, the task is released,
// unless the agent may still reconnect.
func (s *Service) dispatch(ctx context.Context, h *ledger.Log[life], _ cmd.Command) error {
	l := h.State()
	a := l.Undelivered()
	if a == nil || h.Outbox.Has(attemptID(a)) {
		return nil
	}
	via, err := s.say(ctx, h, fmt.Sprintf("assigned.%d", a.Attempt), *a)
	for _, m := range l.Mail() {
		if err != nil {
			break
		}
		_, err = s.say(ctx, h, m.MessageID+".mail", m)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, notifier.ErrAway) && s.registry.Away(h.Ref.Tenant, a.AgentID):
		return nil
	case err != nil:
		s.deps.Logger.Debug().Err(err).Str("task", a.TaskID).Str("agent", a.AgentID).Msg("failed to deliver task")
		h.Outbox.Done(attemptID(a))
		return s.sendTo(ctx, h, s.gone(place{task: a.TaskID, agent: a.AgentID, attempt: a.Attempt}, notDelivered))
	}
	l.withoutMail()
	h.Outbox.Done(attemptID(a))
	return s.sendTo(ctx, h, cmd.Command{
		ID: fmt.Sprintf("%s.%d", assignment.Delivered, a.Attempt), Verb: cmd.ReportTask,
		Data: encode(cmd.TaskReport{TaskID: a.TaskID, AgentID: a.AgentID, Attempt: a.Attempt, Status: assignment.Delivered, Connection: via}),
	})
}

func attemptID(a *event.TaskAssignedData) string { return fmt.Sprintf("assigned.%d", a.Attempt) }

// withoutMail drops the news that were told as mail.
func (l *life) withoutMail() {
	told := map[string]bool{}
	for _, m := range l.Mail() {
		told[m.MessageID] = true
	}
	l.keep(func(n news) bool {
		m, err := event.As[event.TaskMessagedData](n.event)
		return n.event.Type != event.TaskMessaged || err != nil || !told[m.MessageID]
	})
}

// say sends the task's agent a direct message, and returns the connection that took it.
func (s *Service) say(ctx context.Context, h *ledger.Log[life], eventID string, data event.Data) (string, error) {
	e, err := event.New(h.Ref, eventID, source, s.cfg.Now(), data)
	if err != nil {
		return "", err
	}
	return s.notifier.Say(ctx, h.Ref.Tenant, h.State().Head().AgentID, e)
}

// converse tells agents about new events. It keeps those that the holder of the task has to know
// until the holder is connected.
func (s *Service) converse(ctx context.Context, h *ledger.Log[life], _ cmd.Command) error {
	l := h.State()
	if len(l.outbox) == 0 {
		return nil
	}
	if err := s.recall(ctx, h); err != nil {
		return err
	}
	said := uint64(0)
	for len(l.outbox) > 0 {
		n := l.outbox[0]
		switch {
		case !lasting[n.event.Type]:
			s.notifier.Mention(h.Ref.Tenant, n.to, n.event)
		case n.event.Sequence <= l.told:
		case l.Undelivered() != nil && !h.Outbox.Has(attemptID(l.Undelivered())):
			return nil // first the task
		default:
			if _, err := s.notifier.Say(ctx, h.Ref.Tenant, n.to, n.event); err != nil {
				s.deps.Logger.Debug().Err(err).Str("task", l.Head().TaskID).Str("agent", n.to).Msg("agent notification will be retried")
				return s.remember(ctx, h, said)
			}
			said = n.event.Sequence
			l.told = said
		}
		l.outbox = l.outbox[1:]
	}
	return s.remember(ctx, h, said)
}

// remember notes the last event that the agent was told, for the next process that handles the
// task.
func (s *Service) remember(ctx context.Context, h *ledger.Log[life], said uint64) error {
	if agent := h.State().Holder(); said > 0 && agent != "" {
		return s.acks.Put(ctx, h.Ref, id.EntityFromExternal(agent), said)
	}
	return nil
}

// recall reads the last event that the agent was told, if this process does not know it. It treats
// notifications before that event as told; they are not repeated.
func (s *Service) recall(ctx context.Context, h *ledger.Log[life]) error {
	l := h.State()
	if l.asked {
		return nil
	}
	if agent := l.Holder(); agent != "" && l.owed() {
		told, err := s.acks.Get(ctx, h.Ref, id.EntityFromExternal(agent))
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

// family cancels the children that no task waits for, and tells the parent of a child's
// end.
func (s *Service) family(ctx context.Context, h *ledger.Log[life], _ cmd.Command) error {
	l := h.State()
	for _, child := range l.Orphans() {
		stop := cmd.Command{
			ID: "orphan", Verb: cmd.CancelTask, Key: id.EntityFromExternal(child),
			Data: encode(cmd.CancelTaskData{TaskID: child, Reason: cancelledWith}),
		}
		if err := s.once(ctx, h, "orphan."+child, stop); err != nil {
			return err
		}
	}
	parent, end := l.Task().ParentID, l.End()
	if parent == "" || end == nil {
		return nil
	}
	return s.once(ctx, h, "ended", cmd.Command{
		ID: "end-child." + h.Ref.Entity.String(), Verb: cmd.EndChild, Key: id.EntityFromExternal(parent),
		Data: encode(event.ChildFinishedData{
			ChildID: l.Head().TaskID, Status: end.Status, Result: end.Result, ResultRef: end.ResultRef, Code: end.Code, Error: end.Error,
		}),
	})
}

// create creates the child that a command requests if it was accepted, or the task without a
// parent that it has become.
func (s *Service) create(ctx context.Context, h *ledger.Log[life], c cmd.Command) error {
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
			if ok, err = s.holds(ctx, h.Ref, c, n); err != nil {
				return err
			}
		}
	}
	if !ok {
		return nil
	}
	return s.sendTo(ctx, h, cmd.Command{
		ID: commandID, Verb: cmd.CreateTask, Key: id.EntityFromExternal(n.TaskID), Principal: principal, Data: encode(n),
	})
}

// holds takes a place of the quota for a task without a parent, unless the task exists. The sender of a refused one is
// told.
func (s *Service) holds(ctx context.Context, ref subject.Log, c cmd.Command, n cmd.NewTask) (bool, error) {
	task := subject.Log{Tenant: ref.Tenant, Kind: id.KindTask, Entity: id.EntityFromExternal(n.TaskID)}
	last, err := s.deps.Log.Last(ctx, task)
	switch {
	case errors.Is(err, eventlog.ErrDeleted):
		return false, nil
	case err != nil || last.Seq > 0:
		return err == nil, err
	}
	err = s.quota.Hold(ctx, task.Tenant, c.Principal, task.Entity)
	f, refused := errors.AsType[*fault.Fault](err)
	if !refused || f.Code != fault.QuotaExceeded {
		return err == nil, err
	}
	s.Direct(ref, c, event.CommandRefusedData{CommandID: c.ID, Code: string(f.Code), Message: f.Message, Field: f.Field})
	return false, nil
}

// createID is the id of the command that creates a task. A task has one.
const createID = "create"

// call sends the calls of the task's agent to the workers. A process that has taken over the task
// sends all open calls again: the calls' logs decide which command counts.
func (s *Service) call(ctx context.Context, h *ledger.Log[life], c cmd.Command) error {
	var restored time.Time
	if c.Source == cmd.SourceRestore {
		restored = c.Time
	}
	for _, in := range h.State().Pending() {
		key := in.CallID
		if !restored.IsZero() {
			key += ".restored"
		}
		err := s.once(ctx, h, key, cmd.Command{
			ID: in.CallID + "." + uuid.NewString(), Service: CallQueue, Verb: runCall, Data: encode(taskCall{in, restored}),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// relay copies events that the client's log lacks into it.
func (s *Service) relay(ctx context.Context, h *ledger.Log[life], _ cmd.Command) error {
	l := h.State()
	if len(l.inbox) == 0 {
		return nil
	}
	if err := s.inboxes.Relay(ctx, inbox.LogOf(h.Ref.Tenant, l.Task().ClientID), h.Ref, l.inbox); err != nil {
		return fmt.Errorf("tell the client: %w", err)
	}
	l.inbox = nil
	return nil
}
