package team

import (
	"context"
	"fmt"
	"time"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/teamwork"
)

// errandPause is how long what was sent may take to show in the log before it is sent
// again: longer than the bus drops repeats (2 min), so that a repeat is heard.
const errandPause = 3 * time.Minute

// What the registry is told of a team, and what it says then.
const (
	aboutList = "list"
	listed    = "listed"
	unlisted  = "unlisted"
)

// followUp does what follows from the team's log: it lists the team, starts members,
// hands messages on and closes members. Repeats do no harm: the ids of the commands
// follow from the log.
func (s *Service) followUp(ctx context.Context, o *office) error {
	var todo []cmd.Command
	var view note
	entry := ""
	o.mu.Lock()
	if o.state.Created() && o.broken == nil {
		var err error
		if todo, err = errands(o); err != nil {
			o.mu.Unlock()
			return err
		}
		entry = o.entry()
		if entry == listed {
			v := o.state.View()
			view = note{Name: v.Name, Created: v.CreatedAt}
		}
	}
	o.mu.Unlock()
	if err := s.enter(ctx, o, entry, view); err != nil {
		return err
	}
	for _, c := range todo {
		if err := s.Send(ctx, c); err != nil {
			return err
		}
		o.mu.Lock()
		o.errands[errandKey(c)] = s.cfg.Now()
		o.mu.Unlock()
	}
	return nil
}

// entry says what the registry has still to be told of the team: listed, unlisted or
// nothing. mu is held.
func (o *office) entry() string {
	want := listed
	switch {
	case o.state.Parent() != nil:
		return ""
	case o.state.Closed():
		want = unlisted
	}
	if o.entries[aboutList] == want {
		return ""
	}
	return want
}

// enter tells the registry.
func (s *Service) enter(ctx context.Context, o *office, entry string, n note) error {
	var err error
	switch entry {
	case listed:
		err = s.registry.list(ctx, o.log, n)
	case unlisted:
		err = s.registry.unlist(ctx, o.log)
	default:
		return nil
	}
	if err == nil {
		o.mu.Lock()
		o.entries[aboutList] = entry
		o.mu.Unlock()
	}
	return err
}

// errands returns the commands that follow from the state and were not sent lately. mu
// is held.
func errands(o *office) ([]cmd.Command, error) {
	all, err := commands(&o.state, o.log.Tenant)
	if err != nil {
		return nil, err
	}
	now, out, still := o.now(), all[:0], map[string]time.Time{}
	for _, c := range all {
		key := errandKey(c)
		sent, was := o.errands[key]
		if was {
			still[key] = sent
		}
		if !was || now.Sub(sent) >= errandPause {
			out = append(out, c)
		}
	}
	o.errands = still // what has had its effect is forgotten
	return out, nil
}

func errandKey(c cmd.Command) string {
	return c.Service.String() + "." + c.Key.String() + "." + c.Verb.String() + "." + c.ID
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
	for _, m := range st.Pending() {
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

// principal is who the team belongs to.
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
	c := cmd.Command{ID: m.MessageID, Service: cmd.Member, Verb: cmd.SendMessage, Key: p.ID, Principal: m.Principal}
	message := cmd.UserMessage{Content: m.Content, Sender: m.Sender, Attachments: m.Attachments}
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
