package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/ledger"
)

const source = "waggle/worker"

// attempt is one attempt at one job: the claim, and the events that it appends under its fence. Everything in it belongs to one
// goroutine.
type attempt struct {
	s       *Service
	log     *ledger.Log[conversation.State]
	state   *conversation.State // of the log
	tenant  id.Tenant
	runID   string
	id      string           // of the job: that of the run in a chat run
	item    string           // names the work item: the same at every delivery of it, different for a second one
	trace   string           // of the span
	begun   conversation.Job // the job as it was begun: what does not change of it
	number  int
	claimID string     // of our job.started event: the fence
	what    event.Type // appended last, or refused
}

// current returns the job in the log's present state; nil if a restored session does not have it.
func (a *attempt) current() *conversation.Job { return a.state.Job(a.id) }

// newAttempt returns an attempt at the job of a work item. It has no number until it has claimed the job.
func newAttempt(s *Service, c cmd.Command, ref cmd.JobRef, log *ledger.Log[conversation.State]) *attempt {
	return &attempt{
		s: s, log: log, state: log.State(), tenant: c.Tenant, runID: ref.RunID, id: ref.Job(),
		item: c.Time.UTC().Format(time.RFC3339Nano), trace: c.TraceParent,
	}
}

// over reports whether a job no longer needs a worker.
func over(w *conversation.Job) bool { return w == nil || w.Ended || w.Failure != nil }

// claim starts the next attempt, which asks the named model. A job whose attempts are used up is not claimed again: claim returns
// the fault that ends it.
func (a *attempt) claim(ctx context.Context, model string) error {
	before := a.current()
	base, claim := before.Attempt, a.id+".turn."+a.s.cfg.NewID()
	if before.Spent() >= a.s.cfg.MaxAttempts {
		a.number, a.claimID = base, before.Claim // the end is written in the dead attempt's name
		return fault.New(fault.AttemptsOver)
	}
	a.claimID, a.number = claim, base+1
	return a.log.Append(ctx, func(*conversation.State) ([]event.Event, error) {
		w := a.current()
		switch {
		case over(w):
			return nil, errEnded
		case w.Claim == claim:
			return nil, nil
		case w.Attempt != base:
			return nil, errFenced
		}
		return a.events([]string{claim}, event.JobStartedData{
			RunID: a.runID, ExecutionID: a.begun.ExecutionID, Attempt: a.number,
			Worker: a.s.deps.Instance.String(), CommandID: a.item, Resumed: base > 0, MaxAttempts: a.s.cfg.MaxAttempts,
			Model: model, MaxTokens: a.s.cfg.MaxTokens, Part: a.begun.Part,
		})
	})
}

// held reports whether this attempt may still write: errEnded once the job has
// ended, errFenced once another attempt has claimed it.
func (a *attempt) held() error {
	w := a.current()
	switch {
	case over(w):
		return errEnded
	case w.Claim != a.claimID:
		return errFenced
	}
	return nil
}

// saying is held for the text of a message, which nothing may follow once it is closed.
func (a *attempt) saying(msg string) error {
	err := a.held()
	if err == nil && !slices.Contains(a.current().Open, msg) {
		return errEnded
	}
	return err
}

// append writes events under the fence: each is appended only while this attempt
// holds the job, which is checked again whenever another event comes first.
func (a *attempt) append(ctx context.Context, data ...event.Data) error {
	ids := make([]string, len(data))
	for i := range ids {
		ids[i] = a.s.cfg.NewID()
	}
	if len(data) > 0 {
		a.what = data[0].EventType()
	}
	return a.log.Put(ctx, ids, func(_ *conversation.State, left []string) ([]event.Event, error) {
		rest := data[len(data)-len(left):]
		if err := a.held(); err != nil {
			return nil, err
		}
		if !a.open(rest) {
			return nil, errEnded
		}
		return a.events(left, rest...)
	})
}

// open reports whether the messages that the events close are still open. If one is not,
// another process is ending the job: that takes two events, the first of which closes
// the unfinished message.
func (a *attempt) open(list []event.Data) bool {
	for _, data := range list {
		switch d := data.(type) {
		case event.MessageCompletedData:
			if !slices.Contains(a.current().Open, d.MessageID) {
				return false
			}
		case event.MessageDiscardedData:
			if !slices.Contains(a.current().Open, d.MessageID) {
				return false
			}
		}
	}
	return true
}

// events returns the events with the ids.
func (a *attempt) events(ids []string, list ...event.Data) ([]event.Event, error) {
	out := make([]event.Event, 0, len(list))
	for i, data := range list {
		e, err := event.New(a.log.Ref, ids[i], source, a.s.cfg.Now(), data)
		if err != nil {
			return nil, err
		}
		e.TraceParent = a.trace
		out = append(out, e)
	}
	return out, nil
}

// discard closes messages that were left half said.
func (a *attempt) discard(ctx context.Context, why string, messages ...string) error {
	return a.append(ctx, a.discards(why, messages...)...)
}

// discards are the events that close messages which were left half said.
func (a *attempt) discards(why string, messages ...string) []event.Data {
	data := make([]event.Data, 0, len(messages))
	for _, m := range messages {
		data = append(data, event.MessageDiscardedData{
			MessageID: m, RunID: a.runID, ExecutionID: a.begun.ExecutionID, Attempt: a.number,
			Reason: why, Silent: a.current().Silent(), Part: a.begun.Part,
		})
	}
	return data
}

// refused records, once, that this attempt was late.
func (a *attempt) refused(ctx context.Context) error {
	eventID := a.claimID + ".refused"
	err := a.log.Append(ctx, func(*conversation.State) ([]event.Event, error) {
		w := a.current()
		if w == nil || w.Refused >= a.number {
			return nil, nil
		}
		return a.events([]string{eventID}, event.AttemptRefusedData{
			RunID: a.runID, Attempt: a.number, Current: w.Attempt,
			Worker: a.s.deps.Instance.String(), What: a.what, Part: a.begun.Part,
		})
	})
	if err != nil {
		return fmt.Errorf("record the refused attempt: %w", err)
	}
	return nil
}

// principal returns the principal of the run.
func (a *attempt) principal() string {
	if r := a.state.Run(a.runID); r != nil && r.Principal != "" {
		return r.Principal
	}
	return a.state.Principal
}

// agentID is the id of the member that is worked for, empty in a session.
func (a *attempt) agentID() string {
	if a.state.Agent == nil {
		return ""
	}
	return a.state.Agent.MemberID
}
