package verify

import (
	"encoding/json"
	"strings"

	"github.com/waggle-dev/waggle/e2e/chaos/site"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Logs judges the promises that can be seen in the logs alone.
func Logs(v *Verdict, logs map[string][]Stored, paid func(purpose string) int) {
	for name, events := range logs {
		dense(&v[PromiseLog], name, events)
		relayed(&v[PromiseLog], name, events)
		runs(&v[PromiseWork], name, events)
		effects(&v[PromiseEffects], name, events, paid)
		decisions(&v[PromiseDecisions], name, events)
		alone(&v[PromiseIsolation], name, events)
	}
}

// dense: positions are 1, 2, 3, ... and no event is there twice.
func dense(c *Cell, name string, events []Stored) {
	ids := map[string]bool{}
	for i, e := range events {
		c.Checked++
		want := uint64(i + 1)
		switch {
		case e.Header != e.Sequence:
			c.AddBroken("%s: event %s is %d, its header says %d", name, e.ID, e.Sequence, e.Header)
		case e.Sequence > want && i > 0 && events[i-1].Sequence+1 != e.Sequence, i == 0 && e.Sequence != 1:
			c.AddLost("%s: %d follows %d events", name, e.Sequence, i)
		case e.Sequence < want && i > 0 && e.Sequence == events[i-1].Sequence:
			c.doubled("%s: two events are %d", name, e.Sequence)
		case i > 0 && e.Sequence < events[i-1].Sequence:
			c.reordered("%s: %d after %d", name, e.Sequence, events[i-1].Sequence)
		}
		if ids[e.ID] {
			c.doubled("%s: event %s", name, e.ID)
		}
		ids[e.ID] = true
	}
}

// relayed: a team's log holds the events of each member in the member's order.
func relayed(c *Cell, name string, events []Stored) {
	last := map[string]uint64{}
	for _, e := range events {
		var d struct {
			Agent   string `json:"member_id"`
			SubTeam string `json:"sub_team_id"`
			Seq     uint64 `json:"seq"`
		}
		if e.Type != (event.TeamMemberEventData{}).EventType() && e.Type != (event.TeamSubTeamEventData{}).EventType() {
			continue
		}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			c.AddBroken("%s: event %s: %v", name, e.ID, err)
		}
		c.Checked++
		member := d.Agent + d.SubTeam
		switch was := last[member]; {
		case d.Seq == was:
			c.doubled("%s: %d of %s", name, d.Seq, member)
		case d.Seq < was:
			c.reordered("%s: %d of %s after %d", name, d.Seq, member, was)
		case d.Seq > was+1:
			c.AddLost("%s: %d of %s after %d", name, d.Seq, member, was)
		}
		last[member] = d.Seq
	}
}

// kindOf returns what a log is of.
func kindOf(name string) string {
	if parts := strings.SplitN(name, ".", 3); len(parts) == 3 {
		return parts[1]
	}
	return ""
}

// refs are the members of an event's data that say what it is about.
type refs struct {
	RunID     string          `json:"run_id"`
	MessageID string          `json:"message_id"`
	CallID    string          `json:"call_id"`
	InputID   string          `json:"input_id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

func refsOf(e Stored) (r refs) {
	_ = json.Unmarshal(e.Data, &r) // data without such members are about nothing of the kind
	return r
}

// runs: what was accepted ends once.
func runs(c *Cell, name string, events []Stored) {
	switch kindOf(name) {
	case "session", "member":
		ends := map[string]int{}
		for _, e := range events {
			r := refsOf(e)
			switch {
			case e.Type == event.MessageReceivedData{}.EventType():
				if _, twice := ends[r.RunID]; twice {
					c.doubled("%s: %s was accepted twice", name, r.RunID)
				}
				ends[r.RunID] += 0
			case e.Type.Terminal():
				ends[r.RunID]++
			}
		}
		for run, n := range ends {
			c.once(n, name+": the end of "+run)
		}
	case "task":
		n := 0
		for i, e := range events {
			if e.Type == (event.TaskFinishedData{}).EventType() {
				n++
				if late := len(events) - i - 1; late > 0 && onlyRefusals(events[i+1:]) == 0 {
					c.AddBroken("%s: %d events follow its end", name, late)
				}
			}
		}
		c.once(n, name+": the end of a task")
	}
}

// onlyRefusals returns how many of the events are refusals of what came too late.
func onlyRefusals(events []Stored) (n int) {
	for _, e := range events {
		if e.Type == (event.TaskRefusedData{}).EventType() || e.Type == (event.AttemptRefusedData{}).EventType() {
			n++
		}
	}
	return n
}

// effects: what was to be done once was not done twice, and what is said to be done was.
func effects(c *Cell, name string, events []Stored, paid func(string) int) {
	purposes, outcomes := map[string]string{}, map[string][]event.Type{}
	for _, e := range events {
		r := refsOf(e)
		switch e.Type {
		case event.ToolCalledData{}.EventType():
			if r.Tool != site.PayTool {
				continue
			}
			var in struct{ Purpose string }
			if err := json.Unmarshal(r.Arguments, &in); err != nil {
				c.AddBroken("%s: arguments of %s: %v", name, r.CallID, err)
			}
			purposes[r.CallID] = in.Purpose
		case event.ToolCompletedData{}.EventType(), event.ToolFailedData{}.EventType(), event.ToolUnknownData{}.EventType():
			outcomes[r.CallID] = append(outcomes[r.CallID], e.Type)
		}
	}
	for call, purpose := range purposes {
		c.once(len(outcomes[call]), name+": the outcome of "+call)
		n := paid(purpose)
		if n > 1 {
			c.doubled("%s was paid %d times", purpose, n)
		}
		for _, o := range outcomes[call] {
			switch {
			case o == event.ToolCompletedData{}.EventType() && n == 0:
				c.AddLost("%s is said to be paid", purpose)
			case o == event.ToolUnknownData{}.EventType():
				c.Unknown++
			}
		}
	}
}

// decisions: a question that was put has one answer.
func decisions(c *Cell, name string, events []Stored) {
	answers, over := map[string]int{}, map[string]bool{}
	open := map[string]string{}
	for _, e := range events {
		r := refsOf(e)
		switch {
		case e.Type == event.InputRequestedData{}.EventType():
			answers[r.InputID] += 0
			open[r.InputID] = r.RunID
		case e.Type == event.InputAnsweredData{}.EventType(), e.Type == event.InputExpiredData{}.EventType():
			answers[r.InputID]++
		case e.Type.Terminal():
			over[r.RunID] = true
		}
	}
	for input, n := range answers {
		if n == 0 && over[open[input]] { // its run was stopped
			c.Checked++
			continue
		}
		c.once(n, name+": the answer to "+input)
	}
}

// alone: no log holds a word of another tenant.
func alone(c *Cell, name string, events []Stored) {
	tenant, _, _ := strings.Cut(name, ".")
	for _, e := range events {
		c.Checked++
		if other := foreign(tenant, e.Raw); other != "" {
			c.AddBroken("%s: event %s of %s", name, e.ID, other)
		}
	}
}

// foreign returns the tenant whose words a text holds, "" if it holds only those of its own.
func foreign(tenant, text string) string {
	for _, other := range site.Tenants {
		if other != tenant && strings.Contains(text, other+"-load-") {
			return other
		}
	}
	return ""
}

// Requests judges whether what a client asked for is in the logs once, and ended once
// for the client.
func Requests(v *Verdict, r Report, logs map[string][]Stored) {
	c := &v[PromiseWork]
	c.Unknown += r.Unknown
	in := map[string]int{}
	for _, name := range r.Logs {
		for _, e := range logs[name] {
			switch e.Type {
			case event.MessageReceivedData{}.EventType(), event.TeamMessageData{}.EventType():
				in[refsOf(e).MessageID]++
			case event.TaskCreatedData{}.EventType():
				in[name[strings.LastIndex(name, ".")+1:]]++
			}
		}
	}
	for _, asked := range r.Asked {
		c.once(in[asked], r.Who+": "+asked+" in the log")
	}
	for unit, n := range r.Ended {
		c.once(n, r.Who+": the end of "+unit+" at the client")
	}
}
