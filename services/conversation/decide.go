package conversation

import (
	"time"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/plan"
)

// decide is how a command is decided.
type decide func(handler) (decision.Decision, error)

// verbs holds how each command to a session is decided.
var verbs = map[id.Name]decide{
	command.Open:           func(h handler) (decision.Decision, error) { return lifecycle{h}.open() },
	command.SendMessage:    func(h handler) (decision.Decision, error) { return intake{h}.receive() },
	command.Cancel:         func(h handler) (decision.Decision, error) { return lifecycle{h}.cancel() },
	command.Close:          func(h handler) (decision.Decision, error) { return lifecycle{h}.close() },
	command.Delete:         func(h handler) (decision.Decision, error) { return lifecycle{h}.delete() },
	command.SettleJob:      handler.goOn,
	command.CheckDeadlines: handler.goOn,
	command.Resume:         handler.goOn,
	command.AbandonJob:     func(h handler) (decision.Decision, error) { return report{h}.abandoned() },
	command.AssignJob:      func(h handler) (decision.Decision, error) { return report{h}.assigned() },
	command.FinishJob:      func(h handler) (decision.Decision, error) { return report{h}.finished() },
	command.AskPeople:      func(h handler) (decision.Decision, error) { return report{h}.asks() },
	command.CloseQuestion:  func(h handler) (decision.Decision, error) { return report{h}.closed() },
	command.Expire:         func(h handler) (decision.Decision, error) { return lifecycle{h}.expire() },
	command.Answer:         func(h handler) (decision.Decision, error) { return answering{h}.respond() },
	command.CancelStep:     func(h handler) (decision.Decision, error) { return control{h}.cancelStep() },
	command.RestartStep:    func(h handler) (decision.Decision, error) { return control{h}.restartStep() },
	command.CancelPlan:     func(h handler) (decision.Decision, error) { return control{h}.cancelPlan() },
	command.Replan:         func(h handler) (decision.Decision, error) { return control{h}.replan() },
}

// memberVerbs holds how each command to a member of a team is decided.
var memberVerbs = map[id.Name]decide{
	command.CreateMember:   func(h handler) (decision.Decision, error) { return lifecycle{h}.create() },
	command.SendMessage:    verbs[command.SendMessage],
	command.Cancel:         verbs[command.Cancel],
	command.Answer:         verbs[command.Answer],
	command.NoteTodos:      func(h handler) (decision.Decision, error) { return lifecycle{h}.noteTodos() },
	command.CloseMember:    verbs[command.Close],
	command.SettleJob:      verbs[command.SettleJob],
	command.AbandonJob:     verbs[command.AbandonJob],
	command.AssignJob:      verbs[command.AssignJob],
	command.FinishJob:      verbs[command.FinishJob],
	command.AskPeople:      verbs[command.AskPeople],
	command.CloseQuestion:  verbs[command.CloseQuestion],
	command.CheckDeadlines: verbs[command.CheckDeadlines],
	command.Resume:         verbs[command.Resume],
}

// person returns the sender of the command.
func person(c command.Command) access.Person {
	return access.Person{Subject: c.Principal, Operator: c.Operator}
}

// sees reports whether the sender of a command to a session sees the session. Services send commands without a principal, or those
// that follow from a command of a person elsewhere, and teams have rules of their own.
func (h handler) sees() bool {
	return h.c.Principal == "" || h.c.Origin != nil || h.c.Service == command.Member || h.s.Created.IsZero() || h.rules.Access.MaySee(h.c.Tenant, h.s.Owner(), person(h.c))
}

// handler decides on one command to a log in the state s. Its kinds divide the commands among them.
type handler struct {
	s     *State
	c     command.Command
	now   time.Time
	rules Rules
}

// director returns the director of a run.
func (h handler) director(r *Run) director {
	return director{s: h.s, r: r, p: r.Plan, now: h.now, rules: h.rules}
}

// current returns the director of the active planned run; ok is false without one.
func (h handler) current() (director, bool) {
	r := h.s.Active()
	if r == nil || r.Plan == nil {
		return director{}, false
	}
	return h.director(r), true
}

// goOn returns the events that are due without the command.
func (h handler) goOn() (decision.Decision, error) {
	return decision.Of(h.advance()...), nil
}

// advance returns the events that follow from the state at the given time without a command: the
// next step of the active run, or the start of the next run.
func (h handler) advance() []decision.Fact {
	r := h.s.Active()
	switch {
	case h.s.Closed:
		return nil
	case r == nil:
		return h.next()
	}
	d := h.director(r)
	if list := d.overBudget(); len(list) > 0 {
		return list
	}
	switch {
	case h.s.InSwarm(r):
		return d.concluded()
	case r.Plan == nil:
		return nil // the worker of a chat run ends it
	}
	if list := d.unsound(); len(list) > 0 {
		return list
	}
	switch r.Plan.Phase {
	case Planning:
		return planner{d}.plan()
	case Confirming:
		return planner{d}.confirm()
	case Solving:
		return solver{d}.solve()
	case Aggregating:
		return aggregator{d}.aggregate()
	case Done:
	}
	return nil
}

// next starts the oldest waiting run unless a run is active.
func (h handler) next() []decision.Fact {
	if r := h.s.queue.next(); r != nil && h.s.Active() == nil {
		return []decision.Fact{h.start(r)}
	}
	return nil
}

func (h handler) start(r *Run) decision.Fact {
	d := event.RunStartedData{
		RunID: r.ID, ExecutionID: h.s.queue.executionID(h.now), MessageID: r.MessageID, Content: r.Content, Mode: r.Spec.Mode, Budget: h.rules.budget(r.Spec),
	}
	if d.Mode != event.ModeChat {
		d.MaxConcurrent = h.rules.concurrent(r.Spec)
	}
	return decision.Fact{ID: r.ID + ".started", Data: d}
}

// stop cancels a run, and before that all that is open in it.
func (h handler) stop(r *Run, reason string) []decision.Fact {
	var list []decision.Fact
	if p := r.Plan; p != nil {
		d := h.director(r)
		list = d.stop(h.c)
	}
	if j := h.s.Job(r.ID); r.Plan == nil && j != nil {
		list = stops(j)
	}
	return append(list, decision.Fact{ID: h.c.ID + ".cancelled." + r.ID, Data: event.RunCancelledData{
		RunID: r.ID, ExecutionID: r.ExecutionID, Reason: reason, By: h.c.Principal, CommandID: h.c.ID,
	}})
}

// gone refuses a command about a deleted session. A second deletion succeeds.
func (h handler) gone() decision.Decision {
	if h.c.Verb == command.Delete {
		return decision.Decision{}
	}
	f := fault.New(fault.SessionDeleted)
	return decision.Decision{Direct: event.CommandRefusedData{CommandID: h.c.ID, Code: string(f.Code), Message: f.Message, Field: f.Field}}
}

// absent is the fault of a message to a session or member that does not exist.
func absent(service id.Name) fault.Code {
	if service == command.Member {
		return fault.AgentNotFound
	}
	return fault.SessionNotFound
}

// due: see State.Due.
func (h handler) due() time.Time {
	var due time.Time
	at := func(t time.Time) {
		if due.IsZero() || t.Before(due) {
			due = t
		}
	}
	if r := h.s.Active(); r != nil && r.question() != nil && r.question().expires() {
		at(r.question().Asked.Add(r.question().Timeout))
	}
	d, ok := h.current()
	if !ok {
		return due
	}
	if q := d.p.Asked; q != nil && !q.Over {
		at(q.Asked.Add(q.Timeout))
	}
	if d.p.Retry != nil {
		at(d.p.Retry.Due)
	}
	for _, t := range d.p.Steps {
		switch {
		case t.Retry != nil:
			at(t.Retry.Due)
		case t.State == plan.Running:
			at(solver{d}.deadline(t))
		}
	}
	return due
}
