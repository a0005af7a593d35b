package snapshot

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// team folds the log of a team: who is in it, how they stand, what they say and send to each other.
type team struct {
	name, status string
	closed       bool
	until        int64
	members      []wire.SnapshotMember
	at           map[string]int // places by route
	boards       []board
	suspended    map[string][]string
	talks        map[string]*talk
	said         []said
	saidAt       map[[2]string]int // by the route of the sender or the team, and id
	arrows       arrows
}

type board struct {
	team  string
	tasks []wire.SnapshotBoardTask
}

type said struct {
	wire.SnapshotSaid
	key           [2]string
	text, thought []byte
}

func newTeam() *team {
	return &team{
		at: map[string]int{}, suspended: map[string][]string{}, talks: map[string]*talk{}, saidAt: map[[2]string]int{},
		arrows: arrows{places: map[arrowKey]int{}},
	}
}

func (t *team) fork() *team {
	out := *t
	out.members, out.boards, out.said = slices.Clone(t.members), slices.Clone(t.boards), slices.Clone(t.said)
	for _, list := range [][]said{t.said, out.said} {
		for i := range list {
			list[i].text, list[i].thought = slices.Clip(list[i].text), slices.Clip(list[i].thought)
		}
	}
	out.at, out.suspended, out.saidAt = maps.Clone(t.at), maps.Clone(t.suspended), maps.Clone(t.saidAt)
	out.talks = make(map[string]*talk, len(t.talks))
	for route, of := range t.talks {
		out.talks[route] = of.fork()
	}
	out.arrows = t.arrows.fork()
	return &out
}

func (t *team) snapshot() wire.SnapshotTeam {
	out := wire.SnapshotTeam{
		Name: t.name, Status: t.status, Closed: t.closed, Members: filled(t.members),
		Tasks: []wire.SnapshotBoardTask{}, Messages: []wire.SnapshotSaid{},
		Arrows: filled(t.arrows.all), Sides: filled(t.arrows.sides),
	}
	for i := range out.Members {
		m := &out.Members[i]
		if of := t.talks[m.Route]; of != nil {
			m.Conversation = ptr(of.snapshot())
		}
		if inputs, is := t.suspended[m.Route]; is {
			m.Suspended = filled(inputs)
		}
	}
	for _, b := range t.boards {
		out.Tasks = append(out.Tasks, b.tasks...)
	}
	for _, s := range t.said {
		s.Text, s.Reasoning = string(s.text), string(s.thought)
		out.Messages = append(out.Messages, s.SnapshotSaid)
	}
	return out
}

func (t *team) take(e event.Event) {
	t.until = max(t.until, e.Time.UnixMilli())
	in := unwrap(e)
	t.say(in)
	if in.member {
		t.ofMember(in)
		return
	}
	t.ofTeam(in, e)
}

// saying are the events that say something.
var saying = map[event.Type]bool{
	event.TeamMessage: true, event.MessageDelta: true, event.MessageCompleted: true, event.MessageDiscarded: true,
	event.ReasoningDelta: true, event.ReasoningCompleted: true,
}

// words are the members of events that say something.
type words struct {
	fields
	Member string        `json:"member"`
	Sender *event.Sender `json:"sender"`
}

// say keeps what is said.
func (t *team) say(in inside) {
	var d words
	if !saying[in.Type] || json.Unmarshal(in.Data, &d) != nil {
		return
	}
	key := [2]string{in.route, d.MessageID}
	n, is := t.saidAt[key]
	if in.Type == event.MessageDiscarded {
		t.unsay(n, is)
		return
	}
	one := said{SnapshotSaid: wire.SnapshotSaid{ID: d.MessageID, From: in.route}, key: key}
	if is {
		one.text, one.thought = t.said[n].text, t.said[n].thought
	}
	if d.Content == "" && (in.Type == event.ReasoningCompleted || in.Type == event.MessageCompleted && !is) {
		return
	}
	if one.hear(in, d); is {
		t.said[n] = one
		return
	}
	t.saidAt[key], t.said = len(t.said), append(t.said, one)
}

// hear adds what an event says.
func (s *said) hear(in inside, d words) {
	switch in.Type {
	case event.TeamMessage:
		s.Done, s.text, s.thought = true, []byte(d.Content), nil
		if s.From, s.To = "", join(in.route, d.Member); d.Sender != nil {
			s.From, s.Board = d.Sender.Name, d.Sender.Kind == event.SenderSystem
		}
	case event.MessageDelta:
		s.text = append(s.text, d.Text...)
	case event.ReasoningDelta:
		s.thought = append(s.thought, d.Text...)
	case event.ReasoningCompleted:
		s.thought = []byte(d.Content)
	case event.MessageCompleted:
		s.Done, s.text, s.Stop = true, []byte(d.Content), d.stop()
	}
}

func (t *team) unsay(n int, is bool) {
	if !is {
		return
	}
	delete(t.saidAt, t.said[n].key)
	t.said = slices.Delete(t.said, n, n+1)
	for i := n; i < len(t.said); i++ {
		t.saidAt[t.said[i].key] = i
	}
}

// resumes are the events after which no job of a member waits for people.
var resumes = map[event.Type]bool{
	event.JobStarted: true, event.InputAnswered: true, event.InputExpired: true, event.RunCompleted: true, event.RunFailed: true,
	event.RunCancelled: true, event.MemberClosed: true,
}

func (t *team) ofMember(in inside) {
	t.know(in.route, event.MemberAgent)
	if in.status != "" {
		t.change(in.route, in.status)
	}
	var d fields
	if talkTakers[in.Type] != nil || in.Type == event.JobSuspended {
		d = read(in.Event)
	}
	if in.Type == event.JobSuspended {
		t.suspended[in.route] = d.Inputs
	} else if resumes[in.Type] {
		delete(t.suspended, in.route)
	}
	of := t.talks[in.route]
	if of == nil {
		of = newTalk(false)
		t.talks[in.route] = of
	}
	of.take(in.Event, d)
}

func (t *team) ofTeam(in inside, e event.Event) {
	switch in.Type {
	case event.TeamCreated:
		if d, err := event.As[event.TeamCreatedData](in.Event); err == nil {
			t.define(d.Definition, in.route)
		}
	case event.TeamMemberStarted:
		if d, err := event.As[event.TeamMemberStartedData](in.Event); err == nil {
			t.know(join(in.route, d.Name), d.Kind)
		}
	case event.TeamStatus:
		if d, err := event.As[event.TeamStatusData](in.Event); err == nil {
			t.turn(in.route, d.NewStatus)
		}
	case event.TeamClosed:
		t.turn(in.route, "closed")
	case event.TeamMessage, event.TeamMessageDropped:
		t.arrows.take(in, e)
	case event.BoardCreated:
		if d, err := event.As[event.BoardCreatedData](in.Event); err == nil {
			t.board(in.route, boardOf(in.route, d.Tasks, e.Sequence))
		}
	case event.BoardUpdated:
		if d, err := event.As[event.BoardUpdatedData](in.Event); err == nil {
			t.update(in.route, d, e.Sequence)
		}
	}
}

// turn sets the status of the team, or of a nested one.
func (t *team) turn(route, status string) {
	switch {
	case route != "":
		t.change(route, status)
	case status == "closed":
		t.closed = true
	default:
		t.status = status
	}
}

// define has the members of a definition.
func (t *team) define(d event.TeamDefinition, route string) {
	if route == "" {
		t.name = d.Name
	}
	var add []wire.SnapshotMember
	var walk func(event.TeamDefinition, string)
	walk = func(d event.TeamDefinition, above string) {
		for _, m := range d.Members {
			one := wire.SnapshotMember{Route: join(above, m.Name), Name: m.Name, Kind: event.MemberAgent, Role: m.Role}
			if m.Team != nil {
				one.Kind = event.MemberTeam
			}
			if _, is := t.at[one.Route]; !is {
				add = append(add, one)
			}
			if m.Team != nil {
				walk(*m.Team, one.Route)
			}
		}
	}
	if walk(d, route); len(add) > 0 {
		t.place(route, add...)
	}
}

// place puts members after those that the team with the route has.
func (t *team) place(route string, add ...wire.SnapshotMember) {
	at := len(t.members)
	if route != "" {
		for at > 0 && t.members[at-1].Route != route && !strings.HasPrefix(t.members[at-1].Route, route+"/") {
			at--
		}
		if at == 0 {
			at = len(t.members)
		}
	}
	t.members = slices.Insert(t.members, at, add...)
	for i, m := range t.members {
		t.at[m.Route] = i
	}
}

// know has a member, and the teams on the way to it, also if no definition names them.
func (t *team) know(route, kind string) {
	if _, is := t.at[route]; is {
		return
	}
	path, name := split(route)
	if path != "" {
		t.know(path, event.MemberTeam)
	}
	if kind != event.MemberTeam {
		kind = event.MemberAgent
	}
	t.place(path, wire.SnapshotMember{Route: route, Name: name, Kind: kind})
}

func (t *team) change(route, status string) {
	if n, is := t.at[route]; is {
		t.members[n].Status = status
	}
}

func (t *team) board(route string, tasks []wire.SnapshotBoardTask) {
	if n := slices.IndexFunc(t.boards, func(b board) bool { return b.team == route }); n >= 0 {
		t.boards[n].tasks = tasks
		return
	}
	t.boards = append(t.boards, board{route, tasks})
}

func (t *team) update(route string, d event.BoardUpdatedData, seq uint64) {
	var tasks []wire.SnapshotBoardTask
	for _, b := range t.boards {
		if b.team == route {
			tasks = slices.Clone(b.tasks)
		}
	}
	for i := range tasks {
		if tasks[i].ID == d.TaskID {
			tasks[i].Status, tasks[i].Seq = d.NewStatus, seq
		}
	}
	t.board(route, tasks)
}

func boardOf(route string, tasks []event.BoardTask, seq uint64) []wire.SnapshotBoardTask {
	out := make([]wire.SnapshotBoardTask, 0, len(tasks))
	for _, b := range tasks {
		out = append(out, wire.SnapshotBoardTask{
			Team: route, ID: b.TaskID, Name: b.TaskName, About: b.Description, Assignee: join(route, b.AssigneeName),
			Needs: filled(b.Dependencies), Status: b.Status, Seq: seq,
		})
	}
	return out
}
