package team

import (
	"context"
	"errors"
	"fmt"

	"github.com/waggle-dev/waggle/internal/command"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/teamwork"
)

// errResting says that the team has to be noted as active before anything is appended.
var errResting = errors.New("the team is not active")

// handle appends the facts that the command calls for, then sends the commands that they entail,
// with ids that a repeat derives again.
func (s *Service) handle(ctx context.Context, c cmd.Command) error {
	l := s.logs.Get(subject.Log{Tenant: c.Tenant, Kind: id.KindTeam, Entity: c.Key})
	if err := s.carryOut(ctx, l, c); err != nil {
		return fmt.Errorf("team %s: handle %s: %w", c.Key, c.Verb, err)
	}
	if err := s.followUp(ctx, l); err != nil {
		return fmt.Errorf("team %s: follow up %s: %w", c.Key, c.Verb, err)
	}
	if err := s.free(ctx, l.Ref); err != nil {
		return fmt.Errorf("team %s: give its place back: %w", c.Key, err)
	}
	return s.owners.tell(ctx, l.Ref)
}

// carryOut is handle without what follows from the state alone.
func (s *Service) carryOut(ctx context.Context, l *ledger.Log[teamwork.State], c cmd.Command) error {
	switch c.Verb {
	case cmd.ActTeam:
		if done, err := s.forward(ctx, l, c); done || err != nil {
			return err
		}
	case cmd.Answer:
		if done, err := s.answer(ctx, l, c); done || err != nil {
			return err
		}
	}
	if err := s.change(ctx, l, c); err != nil {
		return err
	}
	if c.Verb == cmd.Cancel {
		return s.cancel(ctx, l, c)
	}
	return nil
}

// change appends the facts of the command, and answers its sender. It first marks an idle team as
// active, so that a replica relays it even if this process dies.
func (s *Service) change(ctx context.Context, l *ledger.Log[teamwork.State], c cmd.Command) error {
	if err := l.Sync(ctx); err != nil {
		return err
	}
	d, err := l.Update(ctx, s.decide(c, false))
	if errors.Is(err, errResting) {
		if err = s.registry.activate(ctx, l.Ref); err != nil {
			return err
		}
		d, err = l.Update(ctx, s.decide(c, true))
	}
	if err != nil {
		return err
	}
	s.Direct(l.Ref, c, d.Direct)
	return nil
}

// decide asks the reducer. Until the team is noted as active it returns errResting where something is to be appended to a team that
// rests. To those that do not see the team it does not exist.
func (s *Service) decide(c cmd.Command, noted bool) func(*teamwork.State) (decision.Decision, error) {
	now := s.cfg.Now()
	return func(st *teamwork.State) (decision.Decision, error) {
		if !st.Sees(c, s.cfg.Access) {
			return teamwork.Unknown(c), nil
		}
		resting := st.Settled()
		d, err := st.Decide(c, now)
		if err == nil && len(d.Facts) > 0 && resting && !noted {
			return d, errResting
		}
		return d, err
	}
}

// forward hands a member's call on to the team that this one is nested in, if it is for
// that. It reports whether it did.
func (s *Service) forward(ctx context.Context, l *ledger.Log[teamwork.State], c cmd.Command) (bool, error) {
	var a cmd.TeamAct
	if err := c.Decode(&a); err != nil {
		return false, command.Permanent(err)
	}
	var parent event.TeamParent
	var ours bool
	err := l.Read(ctx, func(st *teamwork.State) error {
		to, forwarded := st.Forward(a)
		parent, ours = to, !st.Created() || st.Closing() || !forwarded
		return nil
	})
	if err != nil || ours {
		return false, err
	}
	team, err := id.ParseEntity(parent.TeamID)
	if err != nil {
		return false, command.Permanent(err)
	}
	a.Member = parent.Node
	c.Key, c.Data, c.Member = team, encode(a), ""
	return true, s.Send(ctx, c)
}

// answer passes an answer to the member that asks: in the member's log exactly one answer counts.
// It reports whether any member asks. A named member gets the answer even if this log does not
// show its question.
func (s *Service) answer(ctx context.Context, l *ledger.Log[teamwork.State], c cmd.Command) (bool, error) {
	var d cmd.AnswerQuestion
	if err := c.Decode(&d); err != nil {
		return false, command.Permanent(err)
	}
	var agent id.Entity
	err := l.Read(ctx, func(st *teamwork.State) error {
		if !st.Created() || !st.Sees(c, s.cfg.Access) {
			return nil
		}
		agent = asked(st, c.Member, &d)
		return nil
	})
	if err != nil || agent.IsZero() {
		return false, err
	}
	return true, s.Send(ctx, cmd.Command{
		ID: c.ID, Service: cmd.Member, Verb: cmd.Answer, Tenant: c.Tenant, Key: agent,
		Principal: c.Principal, Operator: c.Operator, Origin: c.Proof(), ReplyTo: c.ReplyTo, Data: encode(d),
	})
}

// asked returns the agent that the answer is for; zero without one, or if the member
// that is named is another.
func asked(st *teamwork.State, member string, d *cmd.AnswerQuestion) id.Entity {
	name := d.InputID
	if name == "" {
		name = d.CallID
	}
	agent, input, known := st.Question(name)
	if known {
		d.InputID = input
	}
	if member == "" {
		return agent
	}
	p, err := st.Locate(member)
	switch {
	case err != nil, known && p.ID != agent:
		return id.Entity{}
	case !known && p.Kind == event.MemberAgent:
		return p.ID
	}
	return agent
}

// cancel stops the members that are meant. It is sent again when the command is.
func (s *Service) cancel(ctx context.Context, l *ledger.Log[teamwork.State], c cmd.Command) error {
	var d cmd.CancelRun
	if err := c.Decode(&d); err != nil {
		return command.Permanent(err)
	}
	var to []cmd.Command
	err := l.Read(ctx, func(st *teamwork.State) error {
		if !st.Created() || !st.Sees(c, s.cfg.Access) {
			return nil
		}
		only, rest := "", ""
		if c.Member != "" {
			p, err := st.Locate(c.Member)
			if err != nil {
				return nil //nolint:nilerr // its sender has been told
			}
			only, rest = p.Name, p.Rest
		}
		for _, m := range st.Follow() {
			if only == "" || m.Name == only {
				to = append(to, stopMember(c, m, rest, d.Reason))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, one := range to {
		if err := s.Send(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// stopMember is the command that stops a member's run.
func stopMember(c cmd.Command, m teamwork.Source, rest, reason string) cmd.Command {
	out := cmd.Command{
		ID: c.ID, Service: cmd.Member, Verb: cmd.Cancel, Tenant: c.Tenant, Key: m.ID, Principal: c.Principal, Origin: c.Proof(),
		Data: encode(cmd.CancelRun{All: true, Reason: reason}),
	}
	if m.Kind == event.MemberTeam {
		out.Service, out.Member = cmd.Team, rest
	}
	return out
}
