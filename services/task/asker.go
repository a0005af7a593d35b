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

// askerTold is the mark in h.Outbox that the asking agent knows the end, or can no longer be told.
const askerTold = "asker.told"

// tellAsker tells the agent that asked for the task outside of any other that it was
// accepted and how it has ended. The end waits for an agent that is away for a moment; one
// that has left is not told.
func (s *Service) tellAsker(ctx context.Context, h *ledger.Log[life], c cmd.Command) error {
	t, end := h.State().Task(), h.State().End()
	if t.AskerID == "" {
		return nil
	}
	if c.Verb == cmd.CreateTask {
		s.mentionAsker(h, "accepted", event.ChildCreatedData{
			ChildID: t.TaskID, ChildRequestID: t.RequestID, ChildAgentID: cmp.Or(t.ExpectedID, t.WantedID), ChildAgentName: cmp.Or(t.ExpectedName, t.WantedName), TaskType: t.TaskType,
		})
	}
	if end == nil {
		return nil
	}
	ended := event.ChildFinishedData{ChildID: t.TaskID, Status: end.Status, Result: end.Result, ResultRef: end.ResultRef, Code: end.Code, Error: end.Error}
	if h.Outbox.Has(askerTold) {
		if c.Verb == cmd.CreateTask { // it asks again
			s.mentionAsker(h, "ended", ended)
		}
		return nil
	}
	mark := askerMark(t.AskerID)
	told, err := s.acks.Get(ctx, h.Ref, mark)
	switch {
	case err != nil:
		return err
	case told > 0 && c.Verb == cmd.CreateTask:
		s.mentionAsker(h, "ended", ended)
	case told == 0:
		e, err := event.New(h.Ref, "asker.ended", source, s.cfg.Now(), ended)
		if err != nil {
			return err
		}
		if _, err = s.notifier.Say(ctx, h.Ref.Tenant, t.AskerID, e); err != nil && s.there(h.Ref, t.AskerID) {
			s.deps.Logger.Debug().Err(err).Str("task", t.TaskID).Str("agent", t.AskerID).Msg("notification of asking agent will be retried")
			return context.Cause(ctx)
		}
		if err := s.acks.Put(ctx, h.Ref, mark, h.Cursor().Seq); err != nil {
			return err
		}
	}
	h.Outbox.Done(askerTold)
	return nil
}

// owesAsker reports whether the end of the task is still to be told.
func (s *Service) owesAsker(h *ledger.Log[life]) bool {
	return h.State().Done() && h.State().Task().AskerID != "" && !h.Outbox.Has(askerTold)
}

// there reports whether an agent has a connection, or its place is kept for it.
func (s *Service) there(log subject.Log, agent string) bool {
	_, there := s.registry.Agent(log.Tenant, agent)
	return there
}

func (s *Service) mentionAsker(h *ledger.Log[life], eventID string, data event.Data) {
	e, err := event.New(h.Ref, "asker."+eventID, source, s.cfg.Now(), data)
	if err != nil {
		s.deps.Logger.Error().Err(err).Str("task", h.Ref.String()).Msg("failed to encode event for asking agent")
		return
	}
	s.notifier.Mention(h.Ref.Tenant, h.State().Task().AskerID, e)
}

// askerMark is the key of the note that the asking agent was told. No agent has this id.
func askerMark(agent string) id.Entity { return id.EntityFromExternal("asker " + agent) }
