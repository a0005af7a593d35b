package conversation

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation/usage"
	"github.com/waggle-dev/waggle/services/plan"
)

// Snapshot is the state of a session that an export carries: the history, and the active or last
// run with its progress. It leaves out work in progress, which starts again after the import.
type Snapshot struct {
	Created     time.Time         `json:"created"`
	Dialect     string            `json:"dialect"`
	Principal   string            `json:"principal,omitempty"`
	Preferences event.Preferences `json:"preferences"`
	History     []Line            `json:"history,omitempty"` // of finished runs, oldest first
	Run         *RunSnapshot      `json:"run,omitempty"`
	Queued      []RunSnapshot     `json:"queued,omitempty"`
	Messages    int               `json:"messages"`
	Steps       int               `json:"tasks"`
	Usage       event.Usage       `json:"usage"`
	Tainted     bool              `json:"tainted,omitempty"` // the history holds untrusted output
	Warnings    []string          `json:"warnings,omitempty"`
}

// RunSnapshot is one run of a snapshot.
type RunSnapshot struct {
	ID        string        `json:"id"`
	MessageID string        `json:"message_id"`
	Content   string        `json:"content"`
	Principal string        `json:"principal,omitempty"`
	Sender    *event.Sender `json:"sender,omitempty"` // absent: a user
	event.Attachments
	Spec      event.RunSpec `json:"spec"`
	Status    Status        `json:"status"`
	Execution string        `json:"execution_id,omitempty"`
	Started   time.Time     `json:"started,omitzero"`
	Answer    string        `json:"answer,omitempty"`
	Outcome   string        `json:"outcome,omitempty"`

	Phase    Phase           `json:"phase,omitempty"`
	Question string          `json:"question,omitempty"`
	Context  json.RawMessage `json:"context,omitempty"`
	Plans    int             `json:"plans,omitempty"`
	Planned  bool            `json:"planned,omitempty"`
	Summary  string          `json:"summary,omitempty"`
	Approved bool            `json:"approved,omitempty"` // the plan was confirmed
	Steps    []StepSnapshot  `json:"tasks,omitempty"`
	Result   string          `json:"result,omitempty"`
}

// StepSnapshot is one step of a snapshot.
type StepSnapshot struct {
	Step     event.Step `json:"task"`
	Status   string     `json:"status"` // waiting, completed, failed, cancelled
	Attempt  int        `json:"attempt"`
	Restarts int        `json:"restarts,omitempty"`
	Output   string     `json:"output,omitempty"`
	Error    string     `json:"error,omitempty"`
}

func snapshotOf(r *Run) RunSnapshot {
	snap := RunSnapshot{
		ID: r.ID, MessageID: r.MessageID, Content: r.Content, Principal: r.Principal, Spec: r.Spec, Status: r.Status,
		Sender: r.Sender, Attachments: r.Attachments,
		Execution: r.ExecutionID, Started: r.Started, Answer: r.Answer, Outcome: r.Outcome,
	}
	p := r.Plan
	if p == nil {
		return snap
	}
	snap.Phase, snap.Question, snap.Context, snap.Plans = p.Phase, p.Question, rawOf(p.Context), p.Plans
	snap.Planned, snap.Summary, snap.Result = p.Planned, p.Summary, p.Result
	snap.Approved = p.Asked != nil && p.Asked.Answered != nil && p.Asked.PlanID == p.PlanID
	for _, t := range p.Steps {
		one := StepSnapshot{Step: t.Step, Status: stateNames[t.State], Attempt: t.Attempt, Restarts: t.Restarts, Output: t.Output, Error: t.Error}
		if t.State == plan.Running {
			one.Status = stateNames[plan.Waiting]
		}
		snap.Steps = append(snap.Steps, one)
	}
	return snap
}

// Stage returns the stage of a session with the snapshot: planning, confirmation, solving,
// aggregation, or idle.
func (s Snapshot) Stage() string {
	switch {
	case s.Run == nil || s.Run.Status.Terminal():
		return "idle"
	case s.Run.Phase == "" || s.Run.Phase == Done:
		return string(Solving)
	}
	return string(s.Run.Phase)
}

// restored replaces all runs by those of an export: the history of a session that returns from elsewhere contains the
// conversation here.
func restored(s *State, e event.Event, d event.SessionRestoredData) error {
	var snap Snapshot
	if err := json.Unmarshal(d.State, &snap); err != nil {
		return fmt.Errorf("decode the restored state: %w", err)
	}
	s.Created, s.Dialect, s.Principal, s.Preferences = snap.Created, snap.Dialect, d.Principal, snap.Preferences
	if s.Created.IsZero() {
		s.Created = e.Time
	}
	s.window.Lost = lost{Any: s.window.Lost.Any || len(s.queue.order) > 0}
	s.window.Planned, s.window.Asking, s.meter.timed = nil, "", nil
	s.queue, s.jobs, s.calls, s.questions = queue{lastExec: s.queue.lastExec}, nil, calls{}, questions{}
	s.init()
	s.totals, s.Closed = usage.TotalsOf(snap.Messages, snap.Steps, snap.Usage), false
	s.history, s.Tainted = snap.History, s.Tainted || snap.Tainted
	runs := snap.Queued
	if snap.Run != nil {
		runs = append([]RunSnapshot{*snap.Run}, runs...)
	}
	for _, one := range runs {
		s.queue.lastExec = max(s.queue.lastExec, one.Execution)
		s.accept(one.run())
	}
	for _, r := range s.queue.order {
		r.Weight = r.weigh(s.calls)
	}
	s.shrink()
	return nil
}

// run returns the run of a snapshot. Work in progress starts again: a chat run from its beginning, an
// unfinished plan or aggregate from scratch, and an open question is asked again.
func (s RunSnapshot) run() *Run {
	r := &Run{
		ID: s.ID, MessageID: s.MessageID, Content: s.Content, Principal: s.Principal, Spec: s.Spec,
		Sender: s.Sender, Attachments: s.Attachments,
		Status: s.Status, ExecutionID: s.Execution, Started: s.Started, Answer: s.Answer, Outcome: s.Outcome,
	}
	if s.Phase == "" {
		if r.Status == Running {
			r.Status = Queued
		}
		return r
	}
	p := &Plan{
		Phase: s.Phase, Question: s.Question, Context: string(s.Context), Plans: s.Plans, Planned: s.Planned,
		Summary: s.Summary, Result: s.Result, PlanID: fmt.Sprintf("plan_%s_%d", short(r.ID), s.Plans),
	}
	r.Plan = p
	for _, t := range s.Steps {
		one := &Step{Step: t.Step, State: stateOf(t.Status), Attempt: t.Attempt, Restarts: t.Restarts, Output: t.Output, Error: t.Error}
		one.Counted = one.Final()
		p.Steps = append(p.Steps, one)
	}
	if s.Approved {
		r.ask(&Question{RunID: r.ID, PlanID: p.PlanID, Over: true, Answered: &event.InputAnsweredData{RunID: r.ID, Decision: event.DecisionApprove}})
	}
	if p.Phase == Confirming && !s.Approved {
		p.Phase = Planning // it holds already: the question is asked next
	}
	return r
}
