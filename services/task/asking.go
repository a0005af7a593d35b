package task

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger"
)

const (
	// maxAsked bounds the question, and the answer, that the log of the job repeats: an event holds 256 KiB, and viewers get all of it.
	maxAsked = 48 << 10
	// maxSummary bounds the text of a question.
	maxSummary = 2000
)

// askPeople tells the service that manages the log whose job the task is of the agent's questions, and of what became of them.
func (s *Service) askPeople(ctx context.Context, h *ledger.Log[life], _ cmd.Command) error {
	l := h.State()
	if len(l.asks) == 0 {
		return nil
	}
	ref, key, ok := s.jobOf(l.Task())
	if !ok {
		return nil
	}
	for _, a := range l.asks {
		tell := func(verb id.Name, what string, make func() (any, error)) error {
			c := cmd.Command{Service: ref.Manager(), Key: key, ID: fmt.Sprintf("%s.%s.%d", h.Ref.Entity, what, a.asked.Sequence), Verb: verb}
			return h.Outbox.Once(c.ID, func() error {
				d, err := make()
				if err != nil {
					return err
				}
				c.Data = encode(d)
				return s.sendTo(ctx, h, c)
			})
		}
		if err := tell(cmd.AskPeople, "asked", func() (any, error) { return s.question(ctx, h.Ref, ref, a.asked) }); err != nil {
			return err
		}
		if a.closed.Type == "" {
			continue
		}
		if err := tell(cmd.CloseQuestion, "closed", func() (any, error) { return s.closing(ctx, h.Ref, ref, a) }); err != nil {
			return err
		}
	}
	return nil
}

// inputOf is the id of a question of the task in the log of its job.
func inputOf(task subject.Log, seq uint64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", task.Entity, seq))
	return event.AgentInput + hex.EncodeToString(sum[:10])
}

// question returns the question of an event as the log of the job repeats it.
func (s *Service) question(ctx context.Context, task subject.Log, job cmd.JobRef, e event.Event) (out cmd.JobQuestion, err error) {
	d, err := event.As[event.TaskAskedData](e)
	if err == nil {
		err = s.fill(ctx, task.Tenant, &d)
	}
	if err != nil {
		return out, err
	}
	timeout := time.Duration(d.TimeoutMS) * time.Millisecond
	out = cmd.JobQuestion{
		JobRef:  job,
		InputID: inputOf(task, e.Sequence), Attempt: d.Attempt, Summary: summary(d.Message),
		TimeoutSeconds: int((timeout + time.Second - 1) / time.Second),
		AgentQuestion: event.AgentQuestion{
			TaskID: task.Entity.String(), TaskSeq: e.Sequence, AgentID: d.AgentID, AgentName: d.AgentName, MessageType: d.MessageType,
			Message: d.Message, Options: d.Options, ExpiresAt: e.Time.Add(timeout),
		},
	}
	if len(d.Message)+len(d.Options) > maxAsked {
		out.Message, out.Options, out.Cut = encode(out.Summary), nil, true
	}
	return out, nil
}

// closing returns what became of a question.
func (s *Service) closing(ctx context.Context, task subject.Log, job cmd.JobRef, a ask) (out cmd.ClosedQuestion, err error) {
	out = cmd.ClosedQuestion{JobRef: job, InputID: inputOf(task, a.asked.Sequence), Withdrawn: a.closed.Type != event.TaskAskExpired}
	if a.closed.Type != event.TaskMessaged {
		return out, nil
	}
	d, err := event.As[event.TaskMessagedData](a.closed)
	if err == nil {
		err = s.fill(ctx, task.Tenant, &d)
	}
	if err != nil {
		return out, err
	}
	out.Withdrawn, out.CommandID, out.By, out.Decision = false, d.MessageID, cmp.Or(d.By, d.From), event.DecisionAnswer
	if len(d.Message) <= maxAsked {
		out.Message = d.Message
	}
	if g := d.Given; g != nil {
		out.Decision, out.Feedback, out.ClientID, out.Segment = g.Decision, g.Feedback, g.ClientID, g.Segment
	}
	return out, nil
}

// fill reads the parts of data that are objects. A lost one stays away.
func (s *Service) fill(ctx context.Context, t id.Tenant, d event.Large) error {
	err := s.payloads.Fill(ctx, t, d)
	if errors.Is(err, fault.New(fault.PayloadLost)) {
		s.deps.Logger.Error().Err(err).Msg("part of question dropped: stored data lost")
		return nil
	}
	return err
}

// questionMembers are where agents put the text of a question, the first first.
var questionMembers = []string{"text", "question", "message", "content"}

// summary is a question as a short text for people.
func summary(message json.RawMessage) string {
	out := text(message)
	var members map[string]json.RawMessage
	if json.Unmarshal(message, &members) == nil {
		for _, name := range questionMembers {
			var s string
			if json.Unmarshal(members[name], &s) == nil && s != "" {
				out = s
				break
			}
		}
	}
	out = strings.ToValidUTF8(out[:min(len(out), maxSummary)], "")
	return cmp.Or(out, "The agent asks.")
}
