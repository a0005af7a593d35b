package teamwork

import (
	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// delegated is the messages to agents of the swarm whose outcome members wait for.
type delegated struct {
	delegations map[string]*delegation // by message, until they are done
	reports     []report               // due
}

// delegation is a message to an agent of the swarm whose outcome a member waits for. The agent is
// a member of the team, or of a nested team that receives the team's messages. Snapshots hold it.
type delegation struct {
	Letter event.TeamMessageData `json:"letter"`
	Route  string                `json:"route"`         // of the agent that does it
	Run    string                `json:"run,omitempty"` // of the agent; empty: none yet
}

// report is the result of a delegation. Agents of the swarm lack the team's tools, so the team
// writes to the asking colleague and updates the board. Snapshots hold it.
type report struct {
	ID     string                `json:"id"`
	Member string                `json:"member"` // of this team: who did it, or the nested team that had it done
	Letter event.TeamMessageData `json:"letter"`
	Text   string                `json:"text,omitempty"`
	Failed bool                  `json:"failed,omitempty"`
}

// expects notes that the sender waits for the result of a message, if an agent of the swarm gets
// it.
func (dl *delegated) expects(l event.TeamMessageData, r *roster) {
	p, err := r.find(joinRoute(l.Member, l.Route))
	if err != nil || l.TaskID == "" && (l.Sender == nil || l.Sender.Kind != event.SenderAgent) {
		return
	}
	if p = r.agent(p); r.swarm[p.Route] {
		dl.delegations[l.MessageID] = &delegation{Letter: l, Route: p.Route}
	}
}

// follow follows the agents by their events and those of nested teams. It returns the result of a delegation that is done.
func (dl *delegated) follow(inner event.Event) (*report, error) {
	switch inner.Type {
	case event.MessageReceived, event.MessageRefused, event.TeamMessageDropped:
	case event.RunCompleted, event.RunFailed, event.RunCancelled:
		return dl.finish(inner)
	default:
		return nil, nil //nolint:nilnil // nothing is done
	}
	var d struct {
		MessageID string `json:"message_id"`
		RunID     string `json:"run_id"`
	}
	if err := eventdata.Into(inner, &d); err != nil {
		return nil, err
	}
	do := dl.delegations[d.MessageID]
	switch {
	case do == nil:
	case inner.Type != event.MessageReceived:
		delete(dl.delegations, d.MessageID)
	case inner.Via.Route == do.Route:
		do.Run = d.RunID
	}
	return nil, nil //nolint:nilnil // nothing is done
}

// finish returns the result of a finished run, nil if no member waits for it. A stopped run has none.
func (dl *delegated) finish(inner event.Event) (*report, error) {
	var d struct {
		RunID   string `json:"run_id"`
		Message string `json:"message"`
		Content string `json:"content"`
	}
	if err := eventdata.Into(inner, &d); err != nil {
		return nil, err
	}
	for message, do := range dl.delegations {
		if do.Run != d.RunID || do.Route != inner.Via.Route {
			continue
		}
		delete(dl.delegations, message)
		if inner.Type == event.RunCancelled {
			break
		}
		r := &report{ID: d.RunID + ".report", Member: do.Letter.Member, Letter: do.Letter, Text: d.Content}
		if r.Failed = inner.Type == event.RunFailed; r.Failed {
			r.Text = "I could not do it: " + orElse(d.Message, "it failed")
		}
		return r, nil
	}
	return nil, nil //nolint:nilnil // no member waits for it
}

// reported takes a report off those that are due.
func (dl *delegated) reported(reportID string) {
	if len(dl.reports) > 0 && dl.reports[0].ID == reportID {
		dl.reports = dl.reports[1:]
	}
}

// joinRoute returns the path of a member of the team, or of one within it.
func joinRoute(member, rest string) string {
	if rest == "" {
		return member
	}
	return member + "/" + rest
}
