package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	teamwire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// A socket of a team shows active runs from their beginning, then new events, and sends its
// client's commands to the team, in the sender's name.
func TestASocketOfATeam(t *testing.T) {
	r, d := startTeams(t, func(c *gateway.Config, _ *gateway.Deps) { c.QueueBytes = 2000 })
	d.members = 8000 // the welcome is larger than the queue
	settled := r.settled()
	l := r.runLog(id.KindTeam, "default")
	name := l.Entity.String()
	r.relay(l, "Coder", 1, messageDelta("before"))
	r.relay(l, "Coder", 2, messageDelta("now"))
	d.begins(2)
	c := r.open(pathTeams+name, "")
	link := c.expectWelcome(name).Text
	f := c.expectTeamFrame("event")
	require.Equal(t, "Coder", f.Who)
	require.EqualValues(t, 3*16+15, f.At)
	require.Contains(t, string(f.Data), "now")
	c.expectStatuses(d.members)
	r.relay(l, "Coder", 3, reasoned("done"))
	for i := range 3 {
		f = c.expectTeamFrame("event")
		require.EqualValues(t, 4, f.At>>4)
		require.EqualValues(t, []uint64{0, 1, 15}[i], f.At&15)
	}
	require.Equal(t, wirecmd.TeamAttachRequest{Tenant: l.Tenant, Principal: "anonymous", All: true, Kind: id.KindTeam, ID: l.Entity}, d.asked[0])

	for _, ask := range [][3]string{
		{"say", "a/b", "team.send_message"}, {"approve", "Coder", "team.answer"}, {"stop", "", "team.cancel"}, {"pause", "", "team.pause"},
	} {
		c.sendTeam(ask[0], ask[1], "x")
		cmd := r.nextCommand(name)
		require.Equal(t, ask[2], cmd.Service.String()+"."+cmd.Verb.String())
		require.Equal(t, ask[1], cmd.Member)
		require.Equal(t, "anonymous", cmd.Principal)
		require.Contains(t, cmd.ReplyTo, link)
	}
	c.sendTeam("jump", "", "")
	require.Equal(t, string(fault.UnknownType), c.expectTeamFrame("failed").Code)
	c.write(text(`{"type":"PAUSE","type":"RESUME"}`))
	require.Equal(t, string(fault.BadJSON), c.expectTeamFrame("failed").Code)
	c.leave()
	settled()
}

// Only the sender of a late answer learns that it was late, also in a dialect without a frame of
// its own for this, as singleDialect.
func TestALateAnswerIsRefused(t *testing.T) {
	r, _ := startTeams(t)
	l := r.runLog(id.KindTeam, "default")
	name := l.Entity.String()
	late, other := r.open(pathTeams+name, ""), r.open(pathTeams+name, "")
	watcher := r.open(pathSingle, "watch=team/"+name)
	for _, c := range []*client{late, other} {
		c.expectWelcome(name)
		c.expectTeamFrame("event")
		c.expectStatuses(1)
	}
	watcher.expectTeamFrame("greeting")
	watcher.expectTeamFrame("greeting")
	watcher.expectFrame("event")
	late.sendTeam("approve", "", "call_1")
	r.sendDirect(r.nextCommand(name).ReplyTo, l, event.CommandRefusedData{Code: "INPUT_ANSWERED", Message: "bob was faster", AnsweredBy: "bob"})
	f := late.expectTeamFrame("failed")
	require.Equal(t, []string{"INPUT_ANSWERED", "bob was faster"}, []string{f.Code, f.Text})
	watcher.sendTeam("approve", "", "call_1")
	to := r.nextCommand(name).ReplyTo
	foreign := l
	foreign.Tenant = mustTenant(t, "globex")
	r.sendDirect(to, foreign, event.CommandRefusedData{Code: "X", Message: "not yours"})
	r.sendDirect(to, l, event.CommandRefusedData{Code: "INPUT_ANSWERED", Message: "bob was faster"})
	f = watcher.expectTeamFrame("failed")
	require.Equal(t, []string{"INPUT_ANSWERED", "bob was faster"}, []string{f.Code, f.Text})
	r.relay(l, "Coder", 1, messageDelta("for all"))
	require.Contains(t, string(other.expectTeamFrame("event").Data), "for all", "and nothing before it")
	watcher.expectFrame("event")
	late.leave()
	r.sendDirect(to, l, event.CommandRefusedData{Code: "X"}) // its client has left
}

// A client resumes after any frame, also in the middle of an event, and gets exactly the rest.
func TestATeamIsResumedBehindAnyFrame(t *testing.T) {
	t.Parallel()
	r, _ := startTeams(t, unlimited)
	l := r.runLog(id.KindTeam, "default")
	for i := range 4 {
		r.relay(l, "Coder", uint64(2*i+1), messageDelta(fmt.Sprint(i)))
		r.relay(l, "Coder", uint64(2*i+2), reasoned(fmt.Sprint(i)))
	}
	const total = 1 + 4*(1+3)
	for _, path := range []string{pathTeams + l.Entity.String(), pathRuns} {
		query := "after="
		if path == pathRuns {
			query = "watch=team/" + l.Entity.String() + "&after="
		}
		whole := func(position uint64, n int) []string {
			c := r.open(path, query+fmt.Sprint(position))
			c.expectWelcome(l.Entity.String())
			out := c.raw(n)
			c.expectStatuses(1)
			c.leave()
			return out
		}
		all := whole(0, total)
		for i, s := range all {
			f, err := readTeamFrame([]byte(s))
			require.NoError(t, err)
			require.Equal(t, all[i+1:], whole(f.At, total-i-1), "behind frame %d, at %d", i, f.At)
		}
		for _, bad := range []string{"x", "-1", "1.5", "", "99999999999999999999", fmt.Sprint(10*16 + 15), fmt.Sprint(10 * 16), fmt.Sprint(10*16 + 3)} {
			c := r.open(path, query+bad)
			c.expectRefusal(fault.CursorInvalid, 4422)
		}
	}
	// The newest position is valid, and shows the next event.
	c := r.open(pathTeams+l.Entity.String(), "after="+fmt.Sprint(9*16+15))
	c.expectWelcome(l.Entity.String())
	c.expectStatuses(1)
	r.relay(l, "Coder", 9, messageDelta("next"))
	require.Contains(t, string(c.expectTeamFrame("event").Data), "next")
}

// A member is shown under its own path, and its commands go to its team.
func TestASocketOfAMember(t *testing.T) {
	r, d := startTeams(t)
	l := r.runLog(id.KindMember, "default")
	require.NoError(t, r.append(l, "one", reasoned("alone")))
	team, ok := id.TeamOf(l.Entity)
	require.True(t, ok)
	c := r.open(pathMembers+l.Entity.String(), "")
	c.expectWelcome(l.Entity.String())
	for _, kind := range []string{teamwire.AgentStatus, teamwire.SegmentStart, teamwire.SegmentContent, teamwire.SegmentEnd} {
		require.Equal(t, kind, c.expectTeamFrame("event").Type)
	}
	require.Equal(t, event.AgentIdle, c.expectTeamFrame("status").Text)
	require.Equal(t, id.KindMember, d.asked[0].Kind)
	for ask, verb := range map[string]string{"say": "send_message", "approve": "answer", "stop": "cancel"} {
		c.sendTeam(ask, "somebody else", "x")
		cmd := r.nextCommand(team.String())
		require.Equal(t, []string{"team", verb, l.Entity.String()}, []string{cmd.Service.String(), cmd.Verb.String(), cmd.Member})
	}
	c.sendTeam("pause", "", "")
	require.Equal(t, string(fault.InvalidField), c.expectTeamFrame("failed").Code)
}

// Unknown teams and those of other tenants get the same fault, in the words of the path.
func TestUnknownTeams(t *testing.T) {
	t.Parallel()
	r, d := startTeams(t, unlimited, authenticated(key("alice", "red"), key("bob", "blue")))
	team, agent := r.runLog(id.KindTeam, "red"), r.runLog(id.KindMember, "red")
	for _, name := range []string{"team_0123456789abcdef", team.Entity.String(), "a%2Fb", "%2A", "%00", strings.Repeat("x", 500)} {
		for _, after := range []string{"", "after=0", "after=99", "after=x"} {
			r.open(pathTeams+name, after, bearer("bob")...).expectRefusal(fault.TeamNotFound, 4004)
			r.open(pathMembers+name, after, bearer("bob")...).expectRefusal(fault.AgentNotFound, 4004)
		}
	}
	r.open(pathMembers+agent.Entity.String(), "", bearer("bob")...).expectRefusal(fault.AgentNotFound, 4004)
	r.open(pathTeams+agent.Entity.String(), "", bearer("alice")...).expectRefusal(fault.TeamNotFound, 4004)
	r.open(pathRuns, "", bearer("alice")...).expectRefusal(fault.RunNotFound, 4404)
	r.path = pathTeams
	_, status, _ := r.handshake("", bearer("alice")...)
	require.Equal(t, 404, status, "no team is named")
	c := r.open(pathTeams+team.Entity.String(), "", bearer("alice")...)
	c.expectWelcome(team.Entity.String())
	d.srv.Stop()
	r.open(pathTeams+team.Entity.String(), "", bearer("alice")...).expectRefusal(fault.BusUnavailable, 1013)
	r.relay(team, "Coder", 1, messageDelta("goes on"))
	c.expectTeamFrame("event")
	c.expectStatuses(1)
	require.Contains(t, string(c.expectTeamFrame("event").Data), "goes on", "who is there stays")
}

// A drain ends open sockets and those that wait for the team service.
func TestDrainOfSocketsOfTeams(t *testing.T) {
	t.Parallel()
	r, d := startTeams(t, func(c *gateway.Config, _ *gateway.Deps) { c.DrainSpread = 1 })
	l := r.runLog(id.KindTeam, "default")
	c := r.open(pathTeams+l.Entity.String(), "")
	c.expectWelcome(l.Entity.String())
	c.expectTeamFrame("event")
	c.expectStatuses(1)
	began := make(chan struct{})
	d.mu.Lock()
	d.began = began
	d.mu.Unlock()
	waits := r.open(pathTeams+l.Entity.String(), "")
	<-began
	drained := make(chan error, 1)
	go func() { drained <- r.srv.Drain(context.Background()) }()
	c.closes(fault.Lookup(fault.Draining).Close)
	waits.closes(fault.Lookup(fault.Draining).Close)
	require.NoError(t, <-drained)
}
