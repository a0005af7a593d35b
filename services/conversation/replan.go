package conversation

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

func (s *State) replan(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	var d command.ReplanRun
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	dir, on := s.current(now, rules)
	known := s.heard(c.ID)
	switch {
	case known, s.known.Has(c.ID+".plan-cancelled") && (!on || !dir.betweenPlans()):
		return s.replanned(c, d, known, now, rules)
	case on && (dir.p.Phase == Planning || dir.p.Phase == Confirming) && dir.p.Dropped == "":
		return dir.replan(c, orElse(d.Question, dir.p.Question))
	case s.Active() != nil:
		return s.notDone(c, "", fault.RunOver, "The plan is being carried out already.", now, rules)
	}
	if d.Question == "" {
		d.Question = s.lastQuestion()
	}
	if d.Question == "" {
		return s.notDone(c, "", fault.InvalidField, "A plan needs a question. Send one.", now, rules)
	}
	return s.planAgain(c, d, now, rules)
}

// replanned answers a replan that was carried out before.
func (s *State) replanned(c command.Command, d command.ReplanRun, known bool, now time.Time, rules Rules) (decision.Decision, error) {
	if s.known.Has(refusalMark(c.ID)) {
		return s.receivedAgain(c, command.UserMessage{Content: d.Question, RunSpec: d.RunSpec}, now, rules)
	}
	got, err := s.goOn(c, now, rules)
	got.Direct = planningAgain(c)
	if known {
		got.Direct = planningAnew(c)
	}
	return got, err
}

// planningAgain tells the sender of a replan that the active run makes another plan.
func planningAgain(c command.Command) event.NoticeData {
	n := done(c.Verb, "", true, "Another plan is being made.")
	n.Mode = "in_run"
	return n
}

// planningAnew tells the sender of a replan that another run makes the plan.
func planningAnew(c command.Command) event.NoticeData {
	n := done(c.Verb, "", true, "A new run was started.")
	n.Mode = "restart"
	return n
}

// planAgain starts a run for the question, as if it had been sent as a message.
func (s *State) planAgain(c command.Command, d command.ReplanRun, now time.Time, rules Rules) (decision.Decision, error) {
	d.Mode = event.ModePlan
	data, err := json.Marshal(command.UserMessage{Content: d.Question, RunSpec: d.RunSpec})
	if err != nil {
		return decision.Decision{}, fmt.Errorf("encode %s: %w", command.SendMessage, err)
	}
	c.Data = data
	got, err := s.receive(c, now, rules)
	got.Direct = planningAnew(c)
	return got, err
}

func (s *State) lastQuestion() string {
	for i := len(s.order) - 1; i >= 0; i-- {
		if p := s.order[i].Pipeline; p != nil && p.Question != "" {
			return p.Question
		}
	}
	return s.asking
}

// replan drops the plan that is made or being made for another one.
func (d director) replan(c command.Command, question string) (decision.Decision, error) {
	if !d.s.known.Has(c.ID + ".plan-cancelled") {
		var list []decision.Fact
		if d.p.Job != nil {
			list = discards(d.p.Job)
		}
		return decision.Decision{Facts: append(list, d.planCancelled(c.ID, reasonReplan, c.Principal, "")), Direct: planningAgain(c)}, nil
	}
	return decision.Of(d.startPlan(question)), nil
}

// betweenPlans reports whether one plan was dropped for another that is not begun.
func (d director) betweenPlans() bool {
	p := d.p
	return (p.Phase == Planning || p.Phase == Confirming) && p.Dropped == "" && !p.Planned && p.Retry == nil &&
		(p.Job == nil || p.Job.Ended) && len(p.Invalid) == 0
}
