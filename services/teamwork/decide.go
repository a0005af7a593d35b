package teamwork

import (
	"time"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// MaxPending bounds the waiting messages of a team: enough for a board full of tasks, and few
// enough to stop members early that write to each other in circles.
const MaxPending = 256

// verbs holds how each command is decided: by one of the types that divide the commands among them. None of them changes the state.
var verbs = map[id.Name]func(*State, command.Command, time.Time) (decision.Decision, error){
	command.CreateTeam:  as(steering.create),
	command.SendMessage: as(steering.receive),
	command.Cancel:      as(steering.stop),
	command.Answer:      as(steering.respond),
	command.PauseTeam:   as(steering.pause),
	command.ResumeTeam:  as(steering.resume),
	command.CloseTeam:   as(steering.shutDown),
	command.ActTeam:     as(acting.act),
	command.WakeTeam:    (*State).goOn,
	command.CheckTeam:   (*State).goOn,
}

func as[K ~struct{ *State }](f func(K, command.Command, time.Time) (decision.Decision, error)) func(*State, command.Command, time.Time) (decision.Decision, error) {
	return func(s *State, c command.Command, now time.Time) (decision.Decision, error) { return f(K{s}, c, now) }
}

// Decide returns the remaining effect of the command in this state. now is the time of handling.
// After a decision without facts, another call changes nothing.
func (s *State) Decide(c command.Command, now time.Time) (decision.Decision, error) {
	decide, ok := verbs[c.Verb]
	switch {
	case !ok:
		return decision.Decision{}, fault.Newf(fault.UnknownType, "Teams have no command %q. Send one that the protocol defines.", c.Verb)
	case !s.Created() && c.Verb != command.CreateTeam:
		return Unknown(c), nil
	}
	d, err := decide(s, c, now)
	if due := s.Advance(); len(due) > 0 && len(d.Facts) > 0 {
		d.Facts = due // due facts come first: a service may have died before it appended them
	}
	return d, err
}

// Unknown is the decision about a command to a team that does not exist.
func Unknown(c command.Command) decision.Decision {
	return decision.Decision{Direct: refusal(c, fault.New(fault.TeamNotFound))}
}

// Sees reports whether the sender of a command sees the team. Services send commands without a principal, and members act within
// their team. A command that a team hands on to one within it has been decided there.
func (s *State) Sees(c command.Command, policy access.Policy) bool {
	own := c.Principal == "" || c.Origin != nil || c.Verb == command.ActTeam || s.head.Parent != nil && c.Signature == ""
	return own || !s.Created() || policy.MaySee(c.Tenant, s.Owner(), access.Person{Subject: c.Principal, Operator: c.Operator})
}

func (s *State) goOn(command.Command, time.Time) (decision.Decision, error) {
	return decision.Decision{Facts: s.Advance()}, nil
}

// refuse reports why the command has no effect, and returns the due events.
func (s *State) refuse(c command.Command, why error) (decision.Decision, error) {
	return decision.Decision{Facts: s.Advance(), Direct: refusal(c, why)}, nil
}

// refusal is the answer to the sender.
func refusal(c command.Command, why error) event.Data {
	f := fault.From(why, c.ID)
	if c.Verb == command.ActTeam {
		var a command.TeamAct
		if c.Decode(&a) == nil {
			return event.TeamActedData{CallID: a.CallID, Code: string(f.Code), Message: f.Public()}
		}
	}
	return event.CommandRefusedData{CommandID: c.ID, Code: string(f.Code), Message: f.Public(), Field: f.Field}
}

// write returns a message for a member, if it can take one.
func (s *State) write(messageID, to, content string, from *event.Sender) (event.TeamMessageData, error) {
	p, err := s.Locate(to)
	switch {
	case s.closing != nil:
		return event.TeamMessageData{}, fault.New(fault.TeamClosed)
	case err != nil:
		return event.TeamMessageData{}, err
	case len(s.pending) >= MaxPending:
		return event.TeamMessageData{}, fault.Newf(fault.QueueFull, "Too many messages wait in this team. Wait for an answer, then send again.")
	}
	return event.TeamMessageData{MessageID: messageID, Member: p.Name, Route: p.Rest, Content: content, Sender: from}, nil
}

func dropped(m event.TeamMessageData, reason string) decision.Fact {
	return decision.Fact{ID: m.MessageID + ".dropped", Data: event.TeamMessageDroppedData{MessageID: m.MessageID, Member: m.Member, Reason: reason}}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
