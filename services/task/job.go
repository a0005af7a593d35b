package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/ledger"
)

// jobOf returns the job that the task is, and the entity in whose log it is; ok is false for any other task.
func (s *Service) jobOf(t event.TaskCreatedData) (ref cmd.JobRef, key id.Entity, ok bool) {
	if !t.IsJob() {
		return ref, key, false
	}
	key, err := id.ParseEntity(t.Session)
	if err != nil {
		s.deps.Logger.Error().Err(err).Str("task", t.TaskID).Msg("task report skipped: invalid job log")
		return ref, key, false
	}
	return cmd.JobRef{Kind: id.Kind(t.Kind), RunID: t.RunID, JobID: t.JobID}, key, true
}

// report tells the service that manages the log whose job the task is.
func (s *Service) report(ctx context.Context, h *ledger.Log[life], _ cmd.Command) error {
	l := h.State()
	t, head := l.Task(), l.Head()
	ref, key, ok := s.jobOf(t)
	if !ok {
		return nil
	}
	out := cmd.Command{Service: ref.Manager(), Key: key}
	if l.Holder() != "" {
		out.ID, out.Verb = fmt.Sprintf("%s.taken.%d", h.Ref.Entity, head.Attempt), cmd.AssignJob
		out.Data = encode(cmd.AssignedJob{JobRef: ref, TaskID: h.Ref.Entity.String(), Agent: head.AgentName, Attempt: head.Attempt})
		return s.once(ctx, h, out.ID, out)
	}
	end := l.End()
	if end == nil {
		return nil
	}
	done, err := s.done(ctx, h.Ref.Tenant, *end)
	if err != nil {
		return err
	}
	done.JobRef, done.TaskID, done.Agent = ref, h.Ref.Entity.String(), head.AgentName
	out.ID, out.Verb, out.Data = h.Ref.Entity.String()+".done", cmd.FinishJob, encode(done)
	return s.once(ctx, h, out.ID, out)
}

// done is what became of a task, with its result as a text. A result that is lost fails
// the job.
func (s *Service) done(ctx context.Context, t id.Tenant, end event.TaskFinishedData) (cmd.FinishedJob, error) {
	if err := s.payloads.Fill(ctx, t, &end); errors.Is(err, fault.New(fault.PayloadLost)) {
		s.deps.Logger.Error().Err(err).Str("task", end.TaskID).Msg("task result dropped: stored data lost")
		f := fault.New(fault.PayloadLost)
		end.Status, end.Code, end.Error = event.TaskEndFailed, string(f.Code), f.Public()
	} else if err != nil {
		return cmd.FinishedJob{}, err
	}
	done := cmd.FinishedJob{Output: text(end.Result)}
	if end.Status != event.TaskEndCompleted {
		done.Failed, done.Code, done.Message = true, end.Code, end.Error
	}
	return done, nil
}

// maxText bounds the text of a task's result in a session.
const maxText = 40 << 10

// textMembers are where agents put a text that people are to read, the first first.
var textMembers = []string{"text", "output", "result"}

// text is a result for people: a string itself, an object's text if it has one, and anything else
// as JSON.
func text(result json.RawMessage) string {
	if len(result) == 0 || string(result) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(result, &s) != nil {
		s = within(result)
	}
	return strings.ToValidUTF8(s[:min(len(s), maxText)], "")
}

func within(result json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(result, &members) != nil {
		return string(result)
	}
	for _, name := range textMembers {
		var s string
		if raw := members[name]; len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
			return s
		}
	}
	return string(result)
}
