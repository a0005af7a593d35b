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

// jobs reports on tasks that are jobs to the service that manages the log of the job: their ends, and the questions of agents.
type jobs struct{ *base }

// jobOf returns the job that the task is, and the entity in whose log it is; ok is false for any other task.
func (j *jobs) jobOf(t event.TaskCreatedData) (ref cmd.JobRef, key id.Entity, ok bool) {
	if !t.IsJob() {
		return ref, key, false
	}
	key, err := id.ParseEntity(t.Session)
	if err != nil {
		j.deps.Logger.Error().Err(err).Str("task", t.TaskID).Msg("task report skipped: invalid job log")
		return ref, key, false
	}
	return cmd.JobRef{Kind: id.Kind(t.Kind), RunID: t.RunID, JobID: t.JobID}, key, true
}

// report tells the service that manages the log whose job the task is.
func (j *jobs) report(ctx context.Context, h *ledger.Log[life], _ cmd.Command) error {
	l := h.State()
	t, head := l.Task(), l.Head()
	ref, key, ok := j.jobOf(t)
	if !ok {
		return nil
	}
	out := cmd.Command{Service: ref.Manager(), Key: key}
	if l.Holder() != "" {
		out.ID, out.Verb = fmt.Sprintf("%s.taken.%d", h.Ref.Entity, head.Attempt), cmd.AssignJob
		out.Data = encode(cmd.AssignedJob{JobRef: ref, TaskID: h.Ref.Entity.String(), Agent: head.AgentName, Attempt: head.Attempt})
		return j.once(ctx, h, out.ID, out)
	}
	end := l.End()
	if end == nil {
		return nil
	}
	done, err := j.done(ctx, h.Ref.Tenant, *end)
	if err != nil {
		return err
	}
	done.JobRef, done.TaskID, done.Agent = ref, h.Ref.Entity.String(), head.AgentName
	out.ID, out.Verb, out.Data = h.Ref.Entity.String()+".done", cmd.FinishJob, encode(done)
	return j.once(ctx, h, out.ID, out)
}

// done is what became of a task, with its result as a text. A result that is lost fails
// the job.
func (j *jobs) done(ctx context.Context, t id.Tenant, end event.TaskFinishedData) (cmd.FinishedJob, error) {
	if err := j.payloads.Fill(ctx, t, &end); errors.Is(err, fault.New(fault.PayloadLost)) {
		j.deps.Logger.Error().Err(err).Str("task", end.TaskID).Msg("task result dropped: stored data lost")
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

const (
	// maxAsked bounds the question, and the answer, that the log of the job repeats: an event holds 256 KiB, and viewers get all of it.
	maxAsked = 48 << 10
	// maxSummary bounds the text of a question.
	maxSummary = 2000
)

// ask tells the service that manages the log whose job the task is of the agent's questions, and of what became of them.
func (j *jobs) ask(ctx context.Context, h *ledger.Log[life], _ cmd.Command) error {
	l := h.State()
	if len(l.asks) == 0 {
		return nil
	}
	ref, key, ok := j.jobOf(l.Task())
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
				return j.sendTo(ctx, h, c)
			})
		}
		if err := tell(cmd.AskPeople, "asked", func() (any, error) { return j.question(ctx, h.Ref, ref, a.asked) }); err != nil {
			return err
		}
		if a.closed.Type == "" {
			continue
		}
		if err := tell(cmd.CloseQuestion, "closed", func() (any, error) { return j.closing(ctx, h.Ref, ref, a) }); err != nil {
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
func (j *jobs) question(ctx context.Context, task subject.Log, job cmd.JobRef, e event.Event) (out cmd.JobQuestion, err error) {
	d, err := event.As[event.TaskAskedData](e)
	if err == nil {
		err = j.fill(ctx, task.Tenant, &d)
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
func (j *jobs) closing(ctx context.Context, task subject.Log, job cmd.JobRef, a ask) (out cmd.ClosedQuestion, err error) {
	out = cmd.ClosedQuestion{JobRef: job, InputID: inputOf(task, a.asked.Sequence), Withdrawn: a.closed.Type != event.TaskAskExpired}
	if a.closed.Type != event.TaskMessaged {
		return out, nil
	}
	d, err := event.As[event.TaskMessagedData](a.closed)
	if err == nil {
		err = j.fill(ctx, task.Tenant, &d)
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
func (j *jobs) fill(ctx context.Context, t id.Tenant, d event.Large) error {
	err := j.payloads.Fill(ctx, t, d)
	if errors.Is(err, fault.New(fault.PayloadLost)) {
		j.deps.Logger.Error().Err(err).Msg("part of question dropped: stored data lost")
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
