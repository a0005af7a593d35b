package teamwork

import (
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// steering decides on the commands of people.
type steering struct{ *State }

func (st steering) create(c command.Command, now time.Time) (decision.Decision, error) {
	if st.Created() {
		return st.goOn(c, now)
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

func (st steering) receive(c command.Command, now time.Time) (decision.Decision, error) {
	if st.messages[c.ID] {
		return st.goOn(c, now)
	}
	var d command.UserMessage
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	m, err := st.write(c.ID, c.Member, d.Content, d.Sender)
	if err != nil {
		return st.refuse(c, err)
	}
	m.Principal, m.Attachments, m.Tainted, m.Proof, m.Extra = c.Principal, d.Attachments, d.Tainted, c.Proof().Short(), d.Extra
	return decision.Decision{Facts: []decision.Fact{{ID: c.ID + ".message", Data: m}}}, nil
}

// stop records that members are to stop. It drops messages that were accepted during a pause. The
// members get the others, and stop by themselves.
func (st steering) stop(c command.Command, now time.Time) (decision.Decision, error) {
	if st.once[c.ID] {
		return st.goOn(c, now)
	}
	var d command.CancelRun
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	data := event.TeamStoppedData{CommandID: c.ID, By: c.Principal, Reason: d.Reason}
	if c.Member != "" {
		p, err := st.Locate(c.Member)
		if err != nil {
			return st.refuse(c, err)
		}
		data.Member, data.Route = p.Name, p.Rest
	}
	var list []decision.Fact
	if st.paused {
		for _, m := range st.pending {
			if m.Seq > st.pausedAt && (data.Member == "" || m.Member == data.Member && (data.Route == "" || m.Route == data.Route)) {
				list = append(list, dropped(m.TeamMessageData, "stopped"))
			}
		}
	}
	return decision.Decision{Facts: append(list, decision.Fact{ID: c.ID + ".stopped", Data: data})}, nil
}

// respond changes nothing in the team's log: the question is in the log of an agent,
// and so will be the one answer that counts.
func (st steering) respond(c command.Command, now time.Time) (decision.Decision, error) {
	var d command.AnswerQuestion
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	agent, _, known := st.Question(orElse(d.InputID, d.CallID))
	if !known {
		return st.refuse(c, fault.Newf(fault.InputNotFound, "This team has no such question. Use the invocation_id of the question."))
	}
	if c.Member != "" {
		p, err := st.Locate(c.Member)
		if err != nil {
			return st.refuse(c, err)
		}
		if p.ID != agent {
			return st.refuse(c, fault.Newf(fault.InputNotFound, "The question belongs to another member. Use agent_name and invocation_id of the same question."))
		}
	}
	return st.goOn(c, now)
}

func (st steering) pause(c command.Command, now time.Time) (decision.Decision, error) {
	switch {
	case st.once[c.ID], st.paused:
		return st.goOn(c, now)
	case st.closing != nil:
		return st.refuse(c, fault.New(fault.TeamClosed))
	}
	return decision.Decision{Facts: []decision.Fact{{ID: c.ID + ".paused", Data: event.TeamPausedData{CommandID: c.ID, By: c.Principal}}}}, nil
}

func (st steering) resume(c command.Command, now time.Time) (decision.Decision, error) {
	switch {
	case st.once[c.ID], !st.paused:
		return st.goOn(c, now)
	case st.closing != nil:
		return st.refuse(c, fault.New(fault.TeamClosed))
	}
	return decision.Decision{Facts: []decision.Fact{{ID: c.ID + ".resumed", Data: event.TeamResumedData{CommandID: c.ID, By: c.Principal}}}}, nil
}

func (st steering) shutDown(c command.Command, now time.Time) (decision.Decision, error) {
	if st.closing != nil {
		return st.goOn(c, now)
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
