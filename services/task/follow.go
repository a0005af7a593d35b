package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/manager"
)

const (
	// lookAgain is how soon a task that waits for an agent, or whose agent was not told
	// everything, is looked at again by itself: the net below the watch of the
	// directory. A task waits for 30 s, so this is six looks.
	lookAgain = 5 * time.Second
	// cancelledWith is why the children of a task that is over are cancelled.
	cancelledWith = "the task that asked for it is over"
	// notDelivered is why a task is released that its agent was not handed.
	notDelivered = "not_delivered"
)

// followUp does what the state of a task entails. All of it is derived from the log,
// so that it is done when a command comes again after a crash, and doing it twice
// does no harm. The client is told last: until then nothing counts as done.
func (s *Service) followUp(ctx context.Context, h *manager.Held[life], c cmd.Command) error {
	l := &h.State
	if l.Created.IsZero() {
		return nil
	}
	s.locate(h)
	for _, step := range []func(context.Context, *manager.Held[life], cmd.Command) error{
		s.dispatch, s.converse, s.family, s.call, s.relay,
	} {
		if err := step(ctx, h, c); err != nil {
			return err
		}
	}
	s.locate(h)
	return s.SetTimer(ctx, h, s.due(h))
}

// locate notes where the task is.
func (s *Service) locate(h *manager.Held[life]) {
	l := &h.State
	if l.Done() {
		s.index.drop(h.Log)
		return
	}
	s.index.put(h.Log, place{
		task: l.Head().TaskID, agent: l.Holder(), attempt: l.Head().Attempt, seen: s.cfg.Now(),
		unsaid: len(l.outbox) > 0 || l.Undelivered() != nil,
	})
}

// due is when the task is to be looked at again.
func (s *Service) due(h *manager.Held[life]) time.Time {
	l := &h.State
	now := s.cfg.Now()
	due := l.Due(s.env(h.Log.Tenant, now))
	soon := now.Add(lookAgain)
	if !l.Done() && (l.Waiting() || len(l.outbox) > 0 || l.Undelivered() != nil) && (due.IsZero() || soon.Before(due)) {
		return soon
	}
	return due
}

// dispatch hands the task to its agent. Whose gateway does not confirm that gets it
// no more, unless the agent is expected to come back.
func (s *Service) dispatch(ctx context.Context, h *manager.Held[life], _ cmd.Command) error {
	l := &h.State
	a := l.Undelivered()
	if a == nil || h.Sent[attemptID(a)] {
		return nil
	}
	err := s.say(ctx, h, fmt.Sprintf("assigned.%d", a.Attempt), *a)
	for _, m := range l.Mail() {
		if err != nil {
			break
		}
		err = s.say(ctx, h, m.MessageID+".mail", m)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errAway) && s.crowd.away(h.Log.Tenant, a.AgentID):
		return nil
	case err != nil:
		s.deps.Logger.Debug().Err(err).Str("task", a.TaskID).Str("agent", a.AgentID).Msg("a task was not delivered")
		h.Sent[attemptID(a)] = true
		return s.sendTo(ctx, h, s.gone(place{task: a.TaskID, agent: a.AgentID, attempt: a.Attempt}, notDelivered))
	}
	l.outbox = withoutMail(l.outbox, l.Mail())
	h.Sent[attemptID(a)] = true
	return s.sendTo(ctx, h, cmd.Command{
		ID: fmt.Sprintf("%s.%d", assignment.Delivered, a.Attempt), Verb: cmd.ReportTask,
		Data: encode(cmd.TaskReport{TaskID: a.TaskID, AgentID: a.AgentID, Status: assignment.Delivered}),
	})
}

func attemptID(a *event.TaskAssignedData) string { return fmt.Sprintf("assigned.%d", a.Attempt) }

// withoutMail returns the events that were not told as mail.
func withoutMail(events []event.Event, mail []event.TaskMessagedData) []event.Event {
	told := map[string]bool{}
	for _, m := range mail {
		told[m.MessageID] = true
	}
	var out []event.Event
	for _, e := range events {
		if m, err := event.As[event.TaskMessagedData](e); e.Type == event.TaskMessaged && err == nil && told[m.MessageID] {
			continue
		}
		out = append(out, e)
	}
	return out
}

// say tells the task's agent of something that is no event of the log.
func (s *Service) say(ctx context.Context, h *manager.Held[life], eventID string, data event.Data) error {
	e, err := event.New(h.Log, eventID, source, s.cfg.Now(), data)
	if err != nil {
		return err
	}
	return s.mouth.say(ctx, h.Log.Tenant, h.State.Head().AgentID, e)
}

// converse tells the task's agent what has happened since it was told last. What
// cannot be said now is said when the agent is back; that the task is over is said to
// whoever is there to hear it.
func (s *Service) converse(ctx context.Context, h *manager.Held[life], _ cmd.Command) error {
	l := &h.State
	agent := l.Head().AgentID
	if len(l.outbox) == 0 || agent == "" || l.Undelivered() != nil && !h.Sent[attemptID(l.Undelivered())] {
		return nil
	}
	if err := s.recall(ctx, h, agent); err != nil {
		return err
	}
	said := l.told
	for len(l.outbox) > 0 {
		e := l.outbox[0]
		if e.Sequence > l.told {
			if err := s.mouth.say(ctx, h.Log.Tenant, agent, e); err != nil && !l.Done() {
				s.deps.Logger.Debug().Err(err).Str("task", l.Head().TaskID).Str("agent", agent).Msg("an agent is told later")
				break
			}
			l.told = e.Sequence
		}
		l.outbox = l.outbox[1:]
	}
	if l.told == said || l.Done() {
		return nil
	}
	return s.acks.Put(ctx, h.Log, id.EntityFromExternal(agent), l.told)
}

// recall looks up how far the agent was told, if this process does not know.
func (s *Service) recall(ctx context.Context, h *manager.Held[life], agent string) error {
	if h.State.asked {
		return nil
	}
	told, err := s.acks.Get(ctx, h.Log, id.EntityFromExternal(agent))
	if err != nil {
		return err
	}
	h.State.told, h.State.asked = max(h.State.told, told), true
	return nil
}

// stops reports whether the end is news for the agent that has the task.
func stops(f *event.TaskFinishedData) bool {
	return f.Attempt > 0 && (f.Status == event.TaskEndCancelled || f.Code == string(fault.TaskTimeout))
}

// family creates the child that the command asks for, cancels those that nobody waits
// for, and tells the parent of a child's end.
func (s *Service) family(ctx context.Context, h *manager.Held[life], c cmd.Command) error {
	l := &h.State
	if c.Verb == cmd.SpawnTask {
		if err := s.create(ctx, h, c); err != nil {
			return err
		}
	}
	for _, child := range l.Orphans() {
		stop := cmd.Command{
			ID: "orphan", Verb: cmd.CancelSwarm, Key: id.EntityFromExternal(child),
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
		ID: "child-ended." + l.Head().TaskID, Verb: cmd.ChildEnded, Key: id.EntityFromExternal(parent),
		Data: encode(event.ChildFinishedData{
			ChildID: l.Head().TaskID, Status: end.Status, Result: end.Result, Code: end.Code, Error: end.Error,
		}),
	})
}

// create creates the child that a command asks for, if that was accepted.
func (s *Service) create(ctx context.Context, h *manager.Held[life], c cmd.Command) error {
	var d cmd.SpawnChild
	if err := c.Decode(&d); err != nil {
		return err
	}
	n, ok := h.State.Child(d)
	if !ok {
		return nil
	}
	return s.sendTo(ctx, h, cmd.Command{
		ID: createID, Verb: cmd.CreateTask, Key: id.EntityFromExternal(n.TaskID), Principal: h.State.Task().Principal, Data: encode(n),
	})
}

// createID is the id of the command that creates a task: there is one.
const createID = "create"

// call hands the calls of the task's agent to the workers.
func (s *Service) call(ctx context.Context, h *manager.Held[life], _ cmd.Command) error {
	for _, in := range h.State.Pending() {
		err := s.once(ctx, h, in.CallID, cmd.Command{ID: in.CallID, Service: callService, Verb: runCall, Data: encode(in)})
		if err != nil {
			return err
		}
	}
	return nil
}

// relay copies what the client has not been told into its log.
func (s *Service) relay(ctx context.Context, h *manager.Held[life], _ cmd.Command) error {
	l := &h.State
	if len(l.inbox) == 0 {
		return nil
	}
	if err := s.inboxes.relay(ctx, clientLog(h.Log.Tenant, l.Task().ClientID), h.Log, l.inbox); err != nil {
		return fmt.Errorf("tell the client: %w", err)
	}
	l.inbox = nil
	return nil
}

// once sends a command unless this process has sent it for this state of the task.
func (s *Service) once(ctx context.Context, h *manager.Held[life], key string, c cmd.Command) error {
	if h.Sent[key] {
		return nil
	}
	if err := s.sendTo(ctx, h, c); err != nil {
		return err
	}
	h.Sent[key] = true
	return nil
}

// sendTo sends a command of the task's tenant, to the task itself unless another key,
// and to this service unless another one, is named.
func (s *Service) sendTo(ctx context.Context, h *manager.Held[life], c cmd.Command) error {
	c.Tenant = h.Log.Tenant
	if c.Key.IsZero() {
		c.Key = h.Log.Entity
	}
	if c.Service == (id.Name{}) {
		c.Service = cmd.Task
	}
	return s.Send(ctx, c)
}

// encode returns the JSON form of a command's data, which always has one: its raw
// members were valid when they arrived.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return raw
}
