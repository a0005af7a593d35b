package teamwork

import (
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// MaxPending is how many messages may wait for the members of a team: enough for a
// board full of tasks, small enough that members who write to each other in circles
// are told soon.
const MaxPending = 256

// Fact is an event to be: its data and an id that is the same however often the same
// command is handled.
type Fact struct {
	ID   string
	Data event.Data
}

// Decision is what a command calls for. Aside is an answer for whoever sent the command
// and nobody else; it may be nil.
type Decision struct {
	Facts []Fact
	Aside event.Data
}

var verbs = map[id.Name]func(*State, command.Command, time.Time) (Decision, error){
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

// Decide returns what the command still calls for in this state. now is the time of
// handling. Whoever handles a command appends the facts, applies them and asks again
// until there are none: then the command has had its whole effect. The aside that counts
// is the one of the first answer.
func (s *State) Decide(c command.Command, now time.Time) (Decision, error) {
	decide, ok := verbs[c.Verb]
	switch {
	case !ok:
		return Decision{}, fault.Newf(fault.UnknownType, "Teams have no command %q. Send one that the protocol knows.", c.Verb)
	case !s.Created() && c.Verb != command.CreateTeam:
		return Decision{Aside: refusal(c, fault.New(fault.TeamNotFound))}, nil
	}
	d, err := decide(s, c, now)
	if due := s.Advance(); len(due) > 0 && len(d.Facts) > 0 {
		d.Facts = due // what is due already comes first: a service may have died before it said so
	}
	return d, err
}

func (s *State) goOn(command.Command, time.Time) (Decision, error) {
	return Decision{Facts: s.Advance()}, nil
}

// refuse says why the command has no effect, and goes on with what is due.
func (s *State) refuse(c command.Command, why error) (Decision, error) {
	return Decision{Facts: s.Advance(), Aside: refusal(c, why)}, nil
}

// refusal is what the sender is told.
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

func (s *State) create(c command.Command, now time.Time) (Decision, error) {
	if s.Created() {
		return s.goOn(c, now)
	}
	var d command.NewTeam
	if err := c.Decode(&d); err != nil {
		return Decision{}, err
	}
	if err := Check(d.Definition); err != nil {
		return Decision{}, err
	}
	return Decision{Facts: []Fact{{"created", event.TeamCreatedData{
		TeamID: c.Key.String(), Definition: d.Definition, Parent: d.Parent, Principal: c.Principal,
	}}}}, nil
}

func (s *State) receive(c command.Command, now time.Time) (Decision, error) {
	if s.messages[c.ID] {
		return s.goOn(c, now)
	}
	var d command.UserMessage
	if err := c.Decode(&d); err != nil {
		return Decision{}, err
	}
	m, err := s.write(c.ID, c.Member, d.Content, d.Sender)
	if err != nil {
		return s.refuse(c, err)
	}
	m.Principal, m.Attachments = c.Principal, d.Attachments
	return Decision{Facts: []Fact{{c.ID + ".message", m}}}, nil
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

// stop records that members are to stop. What was accepted for them while the team is
// paused is dropped; the rest they may have, and stop by themselves.
func (s *State) stop(c command.Command, now time.Time) (Decision, error) {
	if s.once[c.ID] {
		return s.goOn(c, now)
	}
	var d command.CancelRun
	if err := c.Decode(&d); err != nil {
		return Decision{}, err
	}
	data := event.TeamStoppedData{CommandID: c.ID, By: c.Principal, Reason: d.Reason}
	if c.Member != "" {
		p, err := s.Locate(c.Member)
		if err != nil {
			return s.refuse(c, err)
		}
		data.Member, data.Route = p.Name, p.Rest
	}
	var list []Fact
	if s.paused {
		for _, m := range s.pending {
			if m.seq > s.pausedAt && (data.Member == "" || m.Member == data.Member && (data.Route == "" || m.Route == data.Route)) {
				list = append(list, dropped(m.TeamMessageData, "stopped"))
			}
		}
	}
	return Decision{Facts: append(list, Fact{c.ID + ".stopped", data})}, nil
}

// respond changes nothing in the team's log: the question is in the log of an agent,
// and so will be the one answer that counts.
func (s *State) respond(c command.Command, now time.Time) (Decision, error) {
	var d command.AnswerQuestion
	if err := c.Decode(&d); err != nil {
		return Decision{}, err
	}
	agent, _, known := s.Question(orElse(d.InputID, d.CallID))
	if !known {
		return s.refuse(c, fault.Newf(fault.InputNotFound, "No member of this team asks this. Use the invocation_id of the question."))
	}
	if c.Member != "" {
		p, err := s.Locate(c.Member)
		if err != nil {
			return s.refuse(c, err)
		}
		if p.ID != agent {
			return s.refuse(c, fault.Newf(fault.InputNotFound, "This member does not ask this. Use agent_name and invocation_id of the same question."))
		}
	}
	return s.goOn(c, now)
}

func (s *State) pause(c command.Command, now time.Time) (Decision, error) {
	switch {
	case s.once[c.ID], s.paused:
		return s.goOn(c, now)
	case s.closing != nil:
		return s.refuse(c, fault.New(fault.TeamClosed))
	}
	return Decision{Facts: []Fact{{c.ID + ".paused", event.TeamPausedData{CommandID: c.ID, By: c.Principal}}}}, nil
}

func (s *State) resume(c command.Command, now time.Time) (Decision, error) {
	switch {
	case s.once[c.ID], !s.paused:
		return s.goOn(c, now)
	case s.closing != nil:
		return s.refuse(c, fault.New(fault.TeamClosed))
	}
	return Decision{Facts: []Fact{{c.ID + ".resumed", event.TeamResumedData{CommandID: c.ID, By: c.Principal}}}}, nil
}

func (s *State) shutDown(c command.Command, now time.Time) (Decision, error) {
	if s.closing != nil {
		return s.goOn(c, now)
	}
	d := command.CloseSession{}
	if len(c.Data) > 0 {
		if err := c.Decode(&d); err != nil {
			return Decision{}, err
		}
	}
	return Decision{Facts: []Fact{{c.ID + ".closing", event.TeamClosingData{
		CommandID: c.ID, By: c.Principal, Reason: orElse(d.Reason, "user_request"),
	}}}}, nil
}
