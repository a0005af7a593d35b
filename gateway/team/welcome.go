package team

import (
	"strconv"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// Greet implements dialect.Codec. A socket of this dialect is greeted by Welcome.
func (*Codec) Greet(dialect.Greeting) [][]byte { return nil }

// Fail implements dialect.Codec. Faults of the connection have the flattened form.
func (c *Codec) Fail(f *fault.Fault, _ time.Time) []byte {
	return c.told(&wire.ErrorPayload{Code: string(f.Code), Message: f.Public(), Field: f.Field})
}

// FailBy is Fail on a socket that shows a team for which the member speaks. The client of the original shows no error that is
// not a member's.
func (c *Codec) FailBy(member string, f *fault.Fault, now time.Time) []byte {
	if c.more || c.single {
		return c.Fail(f, now)
	}
	p := &wire.ErrorPayload{Code: string(f.Code), Message: f.Public(), Field: f.Field}
	p.Where = wire.Where{AgentName: member, MemberRouteKey: member, EventScope: wire.MemberScoped}
	return must(wire.Frame{Type: wire.Error, Payload: p})
}

// Truncated implements dialect.Codec.
func (c *Codec) Truncated(first uint64, _ time.Time) []byte {
	f := fault.New(fault.HeadExpired)
	return c.told(&wire.ErrorPayload{Code: string(f.Code), Message: f.Public(), FirstSeq: first << frameBits})
}

func (c *Codec) told(p *wire.ErrorPayload) []byte {
	if c.more {
		p.EventScope = wire.TeamScoped
	}
	return must(wire.Frame{Type: wire.Error, Payload: p})
}

// must encodes what has no raw members, which cannot fail.
func must(v any) []byte {
	b, err := wire.Encode(v)
	if err != nil {
		panic("team: " + err.Error())
	}
	return b
}

// Welcome returns the first frames of a socket: CONNECTED, and those that say how the team and its members are, which follow the
// events that the view knows of. The view is nil for a run outside of teams.
func (c *Codec) Welcome(at dialect.Link, shows string, view *command.TeamAttachReply) [][]byte {
	hello := wire.ConnectedPayload{TeamID: shows, SessionID: at.ConnectionID}
	if c.single {
		hello.TeamID, hello.AgentID = "", shows
	}
	frames := [][]byte{must(wire.Frame{Type: wire.Connected, Payload: hello})}
	if view == nil {
		return frames
	}
	s := snapshot{codec: c, at: at, teams: map[string]string{"": shows}}
	if view.Agent != nil {
		s.agent(shows, *view.Agent)
		return append(frames, s.frames...)
	}
	s.say(s.scene("", id.KindTeam, shows), message{kind: wire.TeamStatus, data: &wire.TeamStatusPayload{NewStatus: view.Status, ErrorMessage: view.Error}})
	for _, m := range view.Members {
		s.member(m)
	}
	return append(frames, s.frames...)
}

// snapshot makes the frames that say how everything is. They are in no log.
type snapshot struct {
	codec  *Codec
	at     dialect.Link
	teams  map[string]string // ids by route
	frames [][]byte
}

// member says how a member of the team is, or of a nested one.
func (s *snapshot) member(m command.MemberView) {
	if m.Kind == event.MemberTeam {
		s.teams[m.Route] = m.ID
		if m.Status == event.AgentUninitialized || !s.codec.more {
			return // a team that has not begun has no status, and that of a nested one is an addition
		}
		s.say(s.scene(m.Route, id.KindTeam, m.ID), message{kind: wire.TeamStatus, data: &wire.TeamStatusPayload{NewStatus: m.Status}})
		return
	}
	s.say(s.scene(m.Route, id.KindMember, m.ID), message{kind: wire.AgentStatus, data: &wire.AgentStatusPayload{NewStatus: m.Status}, member: m.Name})
}

// agent says how the only agent of the socket is.
func (s *snapshot) agent(shows string, m command.MemberView) {
	s.say(s.scene("", id.KindMember, shows), message{kind: wire.AgentStatus, data: &wire.AgentStatusPayload{NewStatus: m.Status}, member: m.Name})
}

func (s *snapshot) say(sc *scene, m message) {
	s.frames = append(s.frames, s.codec.render(sc, m, count{n: 1, of: 1}))
}

// scene makes up the event that would have said it.
func (s *snapshot) scene(route string, kind id.Kind, entity string) *scene {
	made := event.Event{ID: s.at.ConnectionID + "." + strconv.Itoa(len(s.frames)+1), Time: s.at.Now}
	in := func(k id.Kind, e string) event.Event {
		made.Subject = id.DefaultTenant.String() + "." + string(k) + "." + e
		return made
	}
	sc := &scene{outer: in(id.KindTeam, s.teams[""]), own: in(kind, entity), kind: kind, entity: entity}
	sc.Event = sc.outer
	if route == "" {
		return sc
	}
	sc.Via = event.Via{Route: route, TeamID: entity}
	nodes := strings.Split(route, "/")
	if kind == id.KindMember {
		sc.Via.AgentID, nodes = entity, nodes[:len(nodes)-1]
	}
	for i := range nodes {
		sc.nests = append(sc.nests, in(id.KindTeam, s.teams[strings.Join(nodes[:i+1], "/")]))
	}
	sc.nodes = nodes
	return sc
}
