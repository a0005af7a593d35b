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

var verbs = map[id.Name]func(*State, command.Command, time.Time) (decision.Decision, error){
	command.CreateTeam:  (*State).create,
	command.SendMessage: (*State).receive,
	command.Cancel:      (*State).stop,
	command.Answer:      (*State).respond,
	command.PauseTeam:   (*State).pause,
	command.ResumeTeam:  (*State).resume,
	command.CloseTeam:   (*State).shutDown,
	command.ActTeam:     (*State).act,
	command.WakeTeam:    (*State).goOn,
	command.CheckTeam:   (*State).goOn,
}

// Decide returns the remaining effect of the command in this state. now is the time of handling.
// After a decision without facts, another call changes nothing.
func (s *State) Decide(c command.Command, now time.Time) (decision.Decision, error) {
	decide, ok := verbs[c.Verb]
	switch {
	case !ok:
		return decision.Decision{}, fault.Newf(fault.UnknownType, "Teams have no command %q. Send one that the protocol knows.", c.Verb)
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

func (s *State) create(c command.Command, now time.Time) (decision.Decision, error) {
	if s.Created() {
		return s.goOn(c, now)
	}
	var d command.NewTeam
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	if err := Check(d.Definition); err != nil {
		return decision.Decision{}, err
	}
	return decision.Decision{Facts: []decision.Fact{{ID: "created", Data: event.TeamCreatedData{
		TeamID: c.Key.String(), Definition: d.Definition, Parent: d.Parent, Principal: c.Principal,
	}}}}, nil
}

func (s *State) receive(c command.Command, now time.Time) (decision.Decision, error) {
	if s.messages[c.ID] {
		return s.goOn(c, now)
	}
	var d command.UserMessage
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	m, err := s.write(c.ID, c.Member, d.Content, d.Sender)
	if err != nil {
		return s.refuse(c, err)
	}
	m.Principal, m.Attachments, m.Tainted, m.Proof, m.Extra = c.Principal, d.Attachments, d.Tainted, c.Proof().Short(), d.Extra
	return decision.Decision{Facts: []decision.Fact{{ID: c.ID + ".message", Data: m}}}, nil
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

// stop records that members are to stop. It drops messages that were accepted during a pause. The
// members get the others, and stop by themselves.
func (s *State) stop(c command.Command, now time.Time) (decision.Decision, error) {
	if s.once[c.ID] {
		return s.goOn(c, now)
	}
	var d command.CancelRun
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	data := event.TeamStoppedData{CommandID: c.ID, By: c.Principal, Reason: d.Reason}
	if c.Member != "" {
		p, err := s.Locate(c.Member)
		if err != nil {
			return s.refuse(c, err)
		}
		data.Member, data.Route = p.Name, p.Rest
	}
	var list []decision.Fact
	if s.paused {
		for _, m := range s.pending {
			if m.seq > s.pausedAt && (data.Member == "" || m.Member == data.Member && (data.Route == "" || m.Route == data.Route)) {
				list = append(list, dropped(m.TeamMessageData, "stopped"))
			}
		}
	}
	return decision.Decision{Facts: append(list, decision.Fact{ID: c.ID + ".stopped", Data: data})}, nil
}

// respond changes nothing in the team's log: the question is in the log of an agent,
// and so will be the one answer that counts.
func (s *State) respond(c command.Command, now time.Time) (decision.Decision, error) {
	var d command.AnswerQuestion
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	agent, _, known := s.Question(orElse(d.InputID, d.CallID))
	if !known {
		return s.refuse(c, fault.Newf(fault.InputNotFound, "This team has no such question. Use the invocation_id of the question."))
	}
	if c.Member != "" {
		p, err := s.Locate(c.Member)
		if err != nil {
			return s.refuse(c, err)
		}
		if p.ID != agent {
			return s.refuse(c, fault.Newf(fault.InputNotFound, "The question belongs to another member. Use agent_name and invocation_id of the same question."))
		}
	}
	return s.goOn(c, now)
}

func (s *State) pause(c command.Command, now time.Time) (decision.Decision, error) {
	switch {
	case s.once[c.ID], s.paused:
		return s.goOn(c, now)
	case s.closing != nil:
		return s.refuse(c, fault.New(fault.TeamClosed))
	}
	return decision.Decision{Facts: []decision.Fact{{ID: c.ID + ".paused", Data: event.TeamPausedData{CommandID: c.ID, By: c.Principal}}}}, nil
}

func (s *State) resume(c command.Command, now time.Time) (decision.Decision, error) {
	switch {
	case s.once[c.ID], !s.paused:
		return s.goOn(c, now)
	case s.closing != nil:
		return s.refuse(c, fault.New(fault.TeamClosed))
	}
	return decision.Decision{Facts: []decision.Fact{{ID: c.ID + ".resumed", Data: event.TeamResumedData{CommandID: c.ID, By: c.Principal}}}}, nil
}

func (s *State) shutDown(c command.Command, now time.Time) (decision.Decision, error) {
	if s.closing != nil {
		return s.goOn(c, now)
	}
	d := command.CloseSession{}
	if len(c.Data) > 0 {
		if err := c.Decode(&d); err != nil {
			return decision.Decision{}, err
		}
	}
	return decision.Decision{Facts: []decision.Fact{{ID: c.ID + ".closing", Data: event.TeamClosingData{
		CommandID: c.ID, By: c.Principal, Reason: orElse(d.Reason, "user_request"),
	}}}}, nil
}
