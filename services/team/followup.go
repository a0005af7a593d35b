package team

import (
	"context"
	"fmt"
	"time"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/teamwork"
)

// Entries of the registry to write for a team.
const (
	listed   = "listed"
	unlisted = "unlisted"
)

// resendPause is how long a command may take to show in the log before it is sent again:
// longer than the bus drops repeats (2 min), so that a repeat is delivered.
const resendPause = 3 * time.Minute

// followUp sends the commands that follow from the team's log: it lists the team, starts
// members, delivers messages and closes members. Repeats do no harm: the ids of the
// commands follow from the log.
func (s *Service) followUp(ctx context.Context, l *ledger.Log[teamwork.State]) error {
	var all []cmd.Command
	var todo string
	var team note
	var err error
	l.Peek(func(st *teamwork.State) {
		if st.Created() {
			all, err = commands(st, l.Ref.Tenant)
			todo, team = entry(l, st)
		}
	})
	if err != nil {
		return err
	}
	if err := s.enter(ctx, l, todo, team); err != nil {
		return err
	}
	for _, c := range l.Outbox.Due(all, s.cfg.Now(), resendPause) {
		if err := s.Send(ctx, c); err != nil {
			return err
		}
		l.Outbox.Sent(c, s.cfg.Now())
	}
	return nil
}

// entry returns the pending change of the team's registry entry: list, unlist or none.
func entry(l *ledger.Log[teamwork.State], st *teamwork.State) (string, note) {
	switch {
	case st.Parent() != nil:
	case st.Closed() && !l.Outbox.Has(unlisted):
		return unlisted, note{}
	case !st.Closed() && !l.Outbox.Has(listed):
		v := st.View()
		return listed, note{Name: v.Name, Created: v.CreatedAt, Owner: st.Owner()}
	}
	return "", note{}
}

// enter tells the registry.
func (s *Service) enter(ctx context.Context, l *ledger.Log[teamwork.State], entry string, n note) error {
	var err error
	switch entry {
	case listed:
		err = s.registry.list(ctx, l.Ref, n)
	case unlisted:
		err = s.registry.unlist(ctx, l.Ref)
	default:
		return nil
	}
	if err == nil {
		l.Outbox.Done(entry)
	}
	return err
}

// commands returns all commands that follow from the state, in the order in which they
// have to be sent.
func commands(st *teamwork.State, tenant id.Tenant) ([]cmd.Command, error) {
	var out []cmd.Command
	for _, m := range st.Unstarted() {
		c, err := createMember(st, m)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	out = append(out, halts(st)...)
	for _, m := range st.Deliverable() {
		c, err := deliver(st, m)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	for _, m := range st.Unclosed() {
		out = append(out, closeMember(m))
	}
	for i := range out {
		out[i].Tenant = tenant
	}
	return out, nil
}

// halts pause or resume nested teams as their team was.
func halts(st *teamwork.State) []cmd.Command {
	verb := cmd.ResumeTeam
	if st.Paused() {
		verb = cmd.PauseTeam
	}
	list, number := st.Unhalted()
	out := make([]cmd.Command, 0, len(list))
	for _, m := range list {
		out = append(out, cmd.Command{ID: fmt.Sprintf("%s-%d", verb, number), Service: cmd.Team, Verb: verb, Key: m.ID})
	}
	return out
}

// createMember is the command that opens a member's log.
func createMember(st *teamwork.State, m teamwork.Source) (cmd.Command, error) {
	c := cmd.Command{ID: "create", Service: cmd.Member, Verb: cmd.CreateMember, Key: m.ID}
	if m.Kind == event.MemberTeam {
		d, parent, err := st.Nested(m.Name)
		if err != nil {
			return c, err
		}
		c.Service, c.Verb, c.Data = cmd.Team, cmd.CreateTeam, encode(cmd.NewTeam{Definition: d, Parent: &parent})
		c.Principal, err = principal(st)
		return c, err
	}
	d, err := st.Agent(m.Name)
	if err != nil {
		return c, err
	}
	c.Data, c.Principal = encode(d), d.Principal
	return c, nil
}

// principal returns the owner of the team.
func principal(st *teamwork.State) (string, error) {
	d, err := st.Agent(st.View().Definition.Coordinator)
	return d.Principal, err
}

// deliver is the command that hands a message on to its member. It says nothing of the
// member's own settings for a message that comes while it works: it waits.
func deliver(st *teamwork.State, m event.TeamMessageData) (cmd.Command, error) {
	p, err := st.Locate(m.Member)
	if err != nil {
		return cmd.Command{}, err
	}
	c := cmd.Command{ID: m.MessageID, Service: cmd.Member, Verb: cmd.SendMessage, Key: p.ID, Principal: m.Principal, Origin: m.Proof}
	message := cmd.UserMessage{Content: m.Content, Sender: m.Sender, Attachments: m.Attachments, Tainted: m.Tainted}
	if p.Kind == event.MemberTeam {
		c.Service, c.Member = cmd.Team, m.Route
	} else {
		message.OnBusy = event.OnBusyEnqueue
	}
	c.Data = encode(message)
	return c, nil
}

// closeMember is the command that ends a member of a team that shuts down.
func closeMember(m teamwork.Source) cmd.Command {
	c := cmd.Command{
		ID: "close", Service: cmd.Member, Verb: cmd.CloseMember, Key: m.ID,
		Data: encode(cmd.CloseSession{Reason: "its team has been shut down"}),
	}
	if m.Kind == event.MemberTeam {
		c.Service, c.Verb = cmd.Team, cmd.CloseTeam
	}
	return c
}
