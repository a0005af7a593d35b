package worker

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/waggle-dev/waggle/internal/quota"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/schema"
)

// questions asks people, and suspends a job that waits for nothing but their answers.
type questions struct {
	*attempt

	answered chan struct{} // holds one when people have answered a question
}

// errAnswered means that a job continues: people have answered before it was suspended.
var errAnswered = errors.New("people have answered")

// aboutCalls asks people whether the calls of the offered tools may run, and the client to carry its own out, all at once.
func (qs *questions) aboutCalls(ctx context.Context, calls []event.ToolCall, offered map[string]tools.Tool) error {
	questions := make([]event.Data, 0, len(calls))
	for _, c := range calls {
		tool := offered[c.Name]
		scope, definition, parameters := event.ScopeTool, tool.Definition(), editable(tool)
		if tool.Client {
			scope, definition, parameters = event.ScopeClientTool, "", nil
		}
		questions = append(questions, event.InputRequestedData{
			InputID: conversation.QuestionOf(c.ID), RunID: qs.runID, ExecutionID: qs.begun.ExecutionID, Scope: scope,
			Attempt: qs.number, CallID: c.ID, Tool: c.Name, Description: tool.Description, Arguments: c.Arguments, Digest: digest(c), Definition: definition, Parameters: parameters,
		})
	}
	if len(questions) == 0 {
		return nil
	}
	return qs.append(ctx, questions...)
}

// maxParameters bounds the schema in a question: those of real tools have 1 to 4 KB.
const maxParameters = 16 << 10

// editable returns the schema of the arguments that people may change; nil: they approve or reject the call as it is.
func editable(tool tools.Tool) json.RawMessage {
	if len(tool.InputSchema) == 0 || len(tool.InputSchema) > maxParameters {
		return nil
	}
	if _, err := schema.Compile(tool.InputSchema); err != nil {
		return nil
	}
	return tool.InputSchema
}

// aboutBudget asks people whether to renew the run's budget.
func (qs *questions) aboutBudget(ctx context.Context) error {
	return qs.over(ctx, "budget_", func() (q overQuestion, due bool) {
		st := qs.state.Next(qs.id)
		use := st.Use
		return overQuestion{use, conversation.BudgetQuestion(use), use.Limit.AskSeconds}, st.Kind == conversation.ActionAsk
	})
}

// aboutQuota asks people whether the run may continue over the limit.
func (qs *questions) aboutQuota(ctx context.Context, o *quota.Over) error {
	granted := qs.state.Run(qs.runID).Granted(o.Resource.String(), o.Scope, o.Day)
	return qs.over(ctx, "quota_", func() (q overQuestion, due bool) {
		r := qs.state.Run(qs.runID)
		if r.Asking() || r.Granted(o.Resource.String(), o.Scope, o.Day) != granted {
			return q, false
		}
		use := r.Use()
		limit, used := o.Amounts()
		use.Resource, use.Granted = o.Resource.String(), granted
		use.Quota = &event.QuotaUse{Scope: o.Scope, Day: o.Day, Limit: limit, Used: used}
		return overQuestion{use, o.Question(), int(o.AskTimeout.Seconds())}, true
	})
}

// overQuestion is the question whether a run may continue over a limit.
type overQuestion struct {
	use     event.BudgetUse
	text    string
	seconds int // for the answer; 0 = for ever
}

// over asks people, if the question is due by the log to which it is appended: jobs
// of a run that come to that side by side ask once.
func (qs *questions) over(ctx context.Context, prefix string, ask func() (q overQuestion, due bool)) error {
	qs.what = event.InputRequested
	return qs.log.Put(ctx, []string{qs.s.cfg.NewID()}, func(_ *conversation.State, left []string) ([]event.Event, error) {
		if err := qs.held(); err != nil {
			return nil, err
		}
		q, due := ask()
		if !due {
			return nil, nil
		}
		return qs.events(left, event.InputRequestedData{
			InputID: prefix + left[0], RunID: qs.runID, ExecutionID: qs.begun.ExecutionID, Scope: event.ScopeBudget,
			Attempt: qs.number, Budget: &q.use, Summary: q.text, TimeoutSeconds: q.seconds,
		})
	})
}

// pause suspends the job if all remaining calls wait for people. It returns errPaused once the log
// records the suspension, and nil if people have answered meanwhile: then the attempt continues.
func (qs *questions) pause(ctx context.Context) error {
	if err := qs.tellOfDeadline(ctx); err != nil {
		return err
	}
	qs.what = event.JobSuspended
	err := qs.log.Put(ctx, []string{qs.claimID + ".paused"}, func(s *conversation.State, left []string) ([]event.Event, error) {
		if err := qs.held(); err != nil {
			return nil, err
		}
		st := s.Next(qs.id)
		if st.Kind != conversation.ActionWait {
			return nil, errAnswered
		}
		return qs.events(left, event.JobSuspendedData{
			RunID: qs.runID, ExecutionID: qs.begun.ExecutionID, Attempt: qs.number, Inputs: st.Questions, Part: qs.begun.Part,
		})
	})
	switch {
	case errors.Is(err, errAnswered):
		return nil
	case err != nil:
		return err
	}
	return errPaused
}

// tellOfDeadline makes the service of the log set a timer for the job's question, if the question
// expires. It comes before the suspension, so that a worker that dies in between leaves it to the
// next one.
func (qs *questions) tellOfDeadline(ctx context.Context) error {
	r := qs.state.Run(qs.runID)
	if r == nil {
		return nil
	}
	input, ok := r.Expiring()
	if !ok {
		return nil
	}
	ref := cmd.JobRef{RunID: qs.runID, JobID: qs.begun.Part.JobID}
	if qs.log.Ref.Kind != id.KindSession {
		ref.Kind = qs.log.Ref.Kind
	}
	c := cmd.Command{Tenant: qs.log.Ref.Tenant, Key: qs.log.Ref.Entity, TraceParent: qs.trace}
	return qs.s.report(ctx, c, ref, cmd.SettleJob, input+".asked", ref)
}
