package original

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/team"
)

// View does what the web client of the team protocol's original does with the messages
// that it is sent, as far as that decides what a person sees: it drops messages by their
// sequence, finds out whose one is, and pieces texts together. It outlives its sockets, and
// never says where it stands.
type View struct {
	last    map[string]uint64 // the newest sequence, by run
	members map[string]*member
	status  string
	board   map[string]string
	Dropped []string // messages without a place
}

type member struct {
	id, status string
	segments   []*segment
	open       bool // the last answer has not ended
}

// segment is a piece of what a member has said or done.
type segment struct {
	id, kind, text, status, outcome string
	logs                            int
}

// NewView returns a client that knows the members by name.
func NewView(members ...string) *View {
	o := &View{last: map[string]uint64{}, members: map[string]*member{}, board: map[string]string{}}
	for _, name := range members {
		o.members[name] = &member{}
	}
	return o
}

// message is as much of a message as the client looks at.
type message struct {
	Type    string `json:"type"`
	Payload struct {
		ID          string          `json:"id"`
		SegmentType string          `json:"segment_type"`
		Delta       string          `json:"delta"`
		Status      string          `json:"new_status"`
		Invocation  string          `json:"invocation_id"`
		Logged      string          `json:"tool_invocation_id"`
		Error       string          `json:"error"`
		Reason      string          `json:"reason"`
		Code        string          `json:"code"`
		Message     string          `json:"message"`
		Content     string          `json:"content"`
		AgentName   string          `json:"agent_name"`
		AgentID     string          `json:"agent_id"`
		Route       string          `json:"member_route_key"`
		Scope       string          `json:"event_scope"`
		EventType   string          `json:"event_type"`
		TaskID      string          `json:"task_id"`
		Result      json.RawMessage `json:"result"`
		Tasks       []struct {
			TaskID string `json:"task_id"`
		} `json:"tasks"`
		Envelope struct {
			Run      string `json:"team_run_id"`
			Sequence uint64 `json:"sequence"`
		} `json:"team_stream_event_envelope"`
	} `json:"payload"`
}

// Receive takes a message.
func (o *View) Receive(raw []byte) error {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	if at := m.Payload.Envelope; at.Run != "" && at.Sequence > 0 {
		if at.Sequence <= o.last[at.Run] {
			return nil
		}
		o.last[at.Run] = at.Sequence
	}
	ofTeam := m.Type == team.TeamStatus || m.Type == team.TaskPlanEvent || m.Type == team.Connected
	if m.Payload.Scope != "" {
		ofTeam = m.Payload.Scope == team.TeamScoped
	}
	if ofTeam {
		o.takeOfTeam(m)
		return nil
	}
	member := o.member(m)
	if member == nil {
		o.drop(m, "whose is it")
		return nil
	}
	o.takeOfMember(member, m)
	return nil
}

func (o *View) drop(m message, why string) {
	o.Dropped = append(o.Dropped, fmt.Sprintf("%s: %s %s %s", why, m.Type, m.Payload.Route, m.Payload.ID+m.Payload.Invocation+m.Payload.Logged))
}

// member returns whose message it is: by path, then by name, then by id. A member of a
// nested team is made up if the client knows something of its name.
func (o *View) member(m message) *member {
	p := m.Payload
	if found := o.members[p.Route]; found != nil {
		found.id = p.AgentID
		return found
	}
	if i := strings.LastIndexByte(p.Route, '/'); i >= 0 {
		if o.members[p.Route[:i]] == nil && o.members[p.Route[i+1:]] == nil && o.members[p.AgentName] == nil {
			return nil
		}
		o.members[p.Route] = &member{id: p.AgentID}
		return o.members[p.Route]
	}
	if found := o.members[p.AgentName]; found != nil {
		return found
	}
	for _, found := range o.members {
		if p.AgentID != "" && found.id == p.AgentID {
			return found
		}
	}
	return nil
}

func (o *View) takeOfTeam(m message) {
	p := m.Payload
	switch {
	case m.Type == team.TeamStatus:
		o.status = strings.ToLower(p.Status)
	case m.Type == team.TaskPlanEvent && p.EventType == team.TasksCreated:
		clear(o.board)
		for _, t := range p.Tasks {
			o.board[t.TaskID] = "not_started"
		}
	case m.Type == team.TaskPlanEvent:
		o.board[p.TaskID] = p.Status
	case m.Type != team.Connected:
		o.drop(m, "no message of a team")
	}
}

func (o *View) takeOfMember(at *member, m message) {
	p := m.Payload
	switch m.Type {
	case team.AgentStatus:
		at.status = p.Status
		at.open = at.open && p.Status != "idle"
	case team.SegmentStart:
		at.open = true
		at.segments = append(at.segments, &segment{id: p.ID, kind: p.SegmentType, status: "parsing"})
	case team.Error, team.InterAgentMessage, team.TaskNotification:
		at.segments = append(at.segments, &segment{kind: m.Type, text: p.Code + p.Message + p.Content, status: "whole"})
	case team.AssistantComplete:
		if !at.open && p.Content != "" { // it takes the text for another answer
			at.segments = append(at.segments, &segment{kind: m.Type, text: p.Content, status: "whole"})
		}
		at.open = false
	case team.TodoListUpdate, team.ArtifactPersisted, team.ArtifactUpdated:
	default:
		s := at.segment(p.ID + p.Invocation + p.Logged)
		if s == nil || !s.take(m) {
			o.drop(m, "no segment, or no such message")
		}
	}
}

func (at *member) segment(id string) *segment {
	i := slices.IndexFunc(at.segments, func(s *segment) bool { return s.id == id && id != "" })
	if i < 0 {
		return nil
	}
	return at.segments[i]
}

// take applies a message about a segment. A segment keeps its first outcome.
func (s *segment) take(m message) bool {
	final := s.outcome != ""
	switch m.Type {
	case team.SegmentContent:
		s.text += m.Payload.Delta
	case team.SegmentEnd:
		if s.status == "parsing" {
			s.status = "parsed"
		}
	case team.ToolLog:
		s.logs++
	case team.ToolApprovalRequested, team.ToolApproved, team.ToolExecutionStarted:
		if !final {
			s.status = m.Type
		}
	case team.ToolDenied, team.ToolExecutionSucceeded, team.ToolExecutionFailed:
		if !final {
			s.status, s.outcome = m.Type, m.Type+" "+m.Payload.Error+m.Payload.Reason+string(m.Payload.Result)
		}
	default:
		return false
	}
	return true
}

// Sees returns what a person sees, a line for each thing.
func (o *View) Sees() string {
	var b strings.Builder
	fmt.Fprintln(&b, "team", o.status)
	for _, task := range slices.Sorted(maps.Keys(o.board)) {
		fmt.Fprintln(&b, "task", task, o.board[task])
	}
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		fmt.Fprintln(&b, "member", name, o.members[name].status)
		for _, s := range o.members[name].segments {
			fmt.Fprintf(&b, "  %s %s %q %s %q %d\n", s.kind, s.id, s.text, s.status, s.outcome, s.logs)
		}
	}
	return b.String()
}

// Unfinished returns the segments that began and did not end, and those that are empty.
func (o *View) Unfinished() (list []string) {
	for name, m := range o.members {
		for _, s := range m.segments {
			if s.status == "parsing" || s.text == "" && s.kind == team.SegmentText {
				list = append(list, name+" "+s.id)
			}
		}
	}
	return list
}
