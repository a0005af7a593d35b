package conversation

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// logFolds are the effects of events about the log as a whole.
var logFolds = map[event.Type]effect{
	event.SessionCreated:  with(onProfile((*Profile).created)),
	event.SessionClosed:   with(onProfile((*Profile).closed)),
	event.SessionDeleted:  with((*State).deleted),
	event.SessionPaused:   with(marked[event.SessionPausedData]),
	event.SessionRestored: with(restored),
	event.MemberCreated:   with(onProfile((*Profile).memberCreated)),
	event.MemberClosed:    with(onProfile((*Profile).memberClosed)),
	event.TodosUpdated:    with(marked[event.TodosUpdatedData], onProfile((*Profile).todosUpdated)),
}

// Profile describes a session, or a member of a team, as a whole.
type Profile struct {
	Created     time.Time
	Updated     time.Time
	Dialect     string
	Principal   string
	OpenedFor   string // the principal for whom a service has opened it
	Preferences event.Preferences
	Closed      bool
	Deleted     bool                     // all else is discarded, and no event follows
	Agent       *event.MemberCreatedData // the owner of a member's log; nil = the log of a session
	Todos       []event.Todo             // of the agent
	Tainted     bool                     // it holds untrusted output, which later messages of the model may follow
}

// Owner returns the principal that the session or the agent belongs to; empty = none is known.
func (p *Profile) Owner() string { return cmp.Or(p.Principal, p.OpenedFor) }

// Unowned reports whether no person owns the log, as is true of the sessions of the built-in agent.
func (p *Profile) Unowned(command.Command) bool { return p.Principal == "" }

// Swarm reports whether the owner of the log is an agent of the swarm, which answers all its runs.
func (p *Profile) Swarm() bool { return p.Agent != nil && p.Agent.Swarm() }

func (p *Profile) created(e event.Event, d event.SessionCreatedData) {
	p.Created, p.Dialect, p.Principal, p.OpenedFor, p.Preferences = e.Time, d.Dialect, d.Principal, d.Owner, d.Preferences
}

func (p *Profile) closed(event.Event, event.SessionClosedData) { p.Closed = true }

// memberCreated opens the log of a member of a team, as created does that of a session.
func (p *Profile) memberCreated(e event.Event, d event.MemberCreatedData) {
	p.Created, p.Principal, p.Agent = e.Time, d.Principal, &d
}

func (p *Profile) memberClosed(event.Event, event.MemberClosedData) { p.Closed = true }

func (p *Profile) todosUpdated(_ event.Event, d event.TodosUpdatedData) { p.Todos = d.Todos }

// from introduces a message with its sender.
func (p *Profile) from(sender event.Sender) string {
	if sender.Kind == event.SenderSystem {
		return "Notification from the system:"
	}
	name := orElse(sender.Name, sender.ID)
	if p.Agent != nil {
		for _, c := range p.Agent.Colleagues {
			if c.Name == name && c.Role != "" {
				return fmt.Sprintf("Message from %s (role: %s):", name, c.Role)
			}
		}
	}
	return fmt.Sprintf("Message from %s:", name)
}

// question is the message that the run answers, as a model sees it.
func (p *Profile) question(r *Run) string {
	if r.Sender == nil && len(r.Spec.Facts)+len(r.Attachments.ContextFiles)+len(r.Attachments.ImageURLs)+len(r.Spec.Files) == 0 {
		return r.Content
	}
	var b strings.Builder
	if r.Sender != nil {
		b.WriteString(p.from(*r.Sender) + "\n\n")
	}
	for _, f := range r.Spec.Facts {
		fmt.Fprintf(&b, "For your information: %s\n%s\n\n", f.Description, f.Value)
	}
	b.WriteString(r.Content)
	for i, file := range r.Attachments.ContextFiles {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString("\nContext file: " + file)
	}
	for i, url := range r.Attachments.ImageURLs {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString("\nImage: " + url)
	}
	b.WriteString(listed(r.Spec.Files))
	return b.String()
}
