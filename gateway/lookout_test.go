package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// A socket of a team shows what is on from its beginning, then what comes, and sends
// what its client asks for to the team, in the sender's name.
func TestASocketOfATeam(t *testing.T) {
	r, d := manned(t)
	settled := r.settled()
	l := r.runLog(id.KindTeam, "default")
	name := l.Entity.String()
	r.relays(l, "Coder", 1, piece("before"))
	r.relays(l, "Coder", 2, piece("now"))
	d.begins(2)
	c := r.open(pathTeams+name, "")
	link := c.welcomed(name).Text
	require.Equal(t, "idle", c.crewSaid("member").Text)
	f := c.crewSaid("event")
	require.Equal(t, "Coder", f.Who)
	require.EqualValues(t, 3*16+15, f.At)
	require.Contains(t, string(f.Data), "now")
	r.relays(l, "Coder", 3, ended("done"))
	for i := range 3 {
		f = c.crewSaid("event")
		require.EqualValues(t, 4, f.At>>4)
		require.EqualValues(t, []uint64{0, 1, 15}[i], f.At&15)
	}
	require.Equal(t, wirecmd.TeamAttachRequest{Tenant: l.Tenant, Principal: "anonymous", Kind: id.KindTeam, ID: l.Entity}, d.asked[0])

	for _, ask := range [][3]string{
		{"say", "a/b", "team.send_message"}, {"approve", "Coder", "team.answer"}, {"stop", "", "team.cancel"}, {"pause", "", "team.pause"},
	} {
		c.commands(ask[0], ask[1], "x")
		cmd := r.nextCommand(name)
		require.Equal(t, ask[2], cmd.Service.String()+"."+cmd.Verb.String())
		require.Equal(t, ask[1], cmd.Member)
		require.Equal(t, "anonymous", cmd.Principal)
		require.Contains(t, cmd.ReplyTo, link)
	}
	c.commands("jump", "", "")
	require.Equal(t, string(fault.UnknownType), c.crewSaid("failed").Code)
	c.write(text(`{"ask":"say","ask":"stop"}`))
	require.Equal(t, string(fault.BadJSON), c.crewSaid("failed").Code)
	c.leave()
	settled()
}

// Whoever answers too late learns of it, and nobody else does: also where the dialect
// has no frame of its own for it.
func TestWhoAnswersTooLateIsTold(t *testing.T) {
	r, _ := manned(t)
	l := r.runLog(id.KindTeam, "default")
	name := l.Entity.String()
	late, other := r.open(pathTeams+name, ""), r.open(pathTeams+name, "")
	watcher := r.open(pathSolo, "watch=team/"+name)
	for _, c := range []*client{late, other} {
		c.welcomed(name)
		c.crewSaid("member")
		c.crewSaid("event")
	}
	watcher.crewSaid("greeting")
	watcher.crewSaid("greeting")
	watcher.said("event")
	late.commands("approve", "", "call_1")
	r.aside(r.nextCommand(name).ReplyTo, l, event.CommandRefusedData{Code: "INPUT_ANSWERED", Message: "bob was faster", AnsweredBy: "bob"})
	f := late.crewSaid("failed")
	require.Equal(t, []string{"INPUT_ANSWERED", "bob was faster"}, []string{f.Code, f.Text})
	watcher.commands("approve", "", "call_1")
	to := r.nextCommand(name).ReplyTo
	foreign := l
	foreign.Tenant = mustTenant(t, "globex")
	r.aside(to, foreign, event.CommandRefusedData{Code: "X", Message: "not yours"})
	r.aside(to, l, event.CommandRefusedData{Code: "INPUT_ANSWERED", AnsweredBy: "bob"})
	s := watcher.said("aside")
	require.Equal(t, string(event.CommandRefused), s.Type)
	require.Contains(t, string(s.Data), "bob")
	r.relays(l, "Coder", 1, piece("for all"))
	require.Contains(t, string(other.crewSaid("event").Data), "for all", "and nothing before it")
	watcher.said("event")
	late.leave()
	r.aside(to, l, event.CommandRefusedData{Code: "X"}) // nobody is there, and nothing breaks
}

// A client comes back behind any frame, also in the middle of an event, and gets exactly
// the rest.
func TestATeamIsResumedBehindAnyFrame(t *testing.T) {
	t.Parallel()
	r, _ := manned(t, unlimited)
	l := r.runLog(id.KindTeam, "default")
	for i := range 4 {
		r.relays(l, "Coder", uint64(2*i+1), piece(fmt.Sprint(i)))
		r.relays(l, "Coder", uint64(2*i+2), ended(fmt.Sprint(i)))
	}
	const total = 1 + 4*(1+3)
	for _, path := range []string{pathTeams + l.Entity.String(), pathRuns} {
		query := "after="
		if path == pathRuns {
			query = "watch=team/" + l.Entity.String() + "&after="
		}
		whole := func(position uint64, n int) []string {
			c := r.open(path, query+fmt.Sprint(position))
			c.welcomed(l.Entity.String())
			c.crewSaid("member")
			out := c.raw(n)
			c.leave()
			return out
		}
		all := whole(0, total)
		for i, s := range all {
			var f crewFrame
			require.NoError(t, json.Unmarshal([]byte(s), &f))
			require.Equal(t, all[i+1:], whole(f.At, total-i-1), "behind frame %d, at %d", i, f.At)
		}
		for _, bad := range []string{"x", "-1", "1.5", "", "99999999999999999999", fmt.Sprint(10*16 + 15), fmt.Sprint(10 * 16), fmt.Sprint(10*16 + 3)} {
			c := r.open(path, query+bad)
			c.turnedAway(fault.CursorInvalid, 4422)
		}
	}
	// The newest position is good, and what comes then comes.
	c := r.open(pathTeams+l.Entity.String(), "after="+fmt.Sprint(9*16+15))
	c.welcomed(l.Entity.String())
	c.crewSaid("member")
	r.relays(l, "Coder", 9, piece("next"))
	require.Contains(t, string(c.crewSaid("event").Data), "next")
}

// A member is shown by its own path, and spoken to through its team.
func TestASocketOfAMember(t *testing.T) {
	r, d := manned(t)
	l := r.runLog(id.KindMember, "default")
	require.NoError(t, r.append(l, "one", ended("alone")))
	team, ok := id.TeamOf(l.Entity)
	require.True(t, ok)
	c := r.open(pathMembers+l.Entity.String(), "")
	c.welcomed(l.Entity.String())
	c.crewSaid("member")
	require.Equal(t, string(event.MemberCreated), c.crewSaid("event").Type)
	for range 3 {
		require.Equal(t, string(event.RunCompleted), c.crewSaid("event").Type)
	}
	require.Equal(t, id.KindMember, d.asked[0].Kind)
	for ask, verb := range map[string]string{"say": "send_message", "approve": "answer", "stop": "cancel"} {
		c.commands(ask, "somebody else", "x")
		cmd := r.nextCommand(team.String())
		require.Equal(t, []string{"team", verb, l.Entity.String()}, []string{cmd.Service.String(), cmd.Verb.String(), cmd.Member})
	}
	c.commands("pause", "", "")
	require.Equal(t, string(fault.UnknownType), c.crewSaid("failed").Code)
}

// What is not there is said, in the words of the path, and the same whoever else has it.
func TestTeamsThatAreNotThere(t *testing.T) {
	t.Parallel()
	r, d := manned(t, unlimited, authenticated(key("alice", "red"), key("bob", "blue")))
	team, agent := r.runLog(id.KindTeam, "red"), r.runLog(id.KindMember, "red")
	for _, name := range []string{"team_0123456789abcdef", team.Entity.String(), "a%2Fb", "%2A", "%00", strings.Repeat("x", 500)} {
		for _, after := range []string{"", "after=0", "after=99", "after=x"} {
			r.open(pathTeams+name, after, bearer("bob")...).turnedAway(fault.TeamNotFound, 4004)
			r.open(pathMembers+name, after, bearer("bob")...).turnedAway(fault.AgentNotFound, 4004)
		}
	}
	r.open(pathMembers+agent.Entity.String(), "", bearer("bob")...).turnedAway(fault.AgentNotFound, 4004)
	r.open(pathTeams+agent.Entity.String(), "", bearer("alice")...).turnedAway(fault.TeamNotFound, 4004)
	r.open(pathRuns, "", bearer("alice")...).turnedAway(fault.RunNotFound, 4404)
	r.path = pathTeams
	_, status, _ := r.handshake("", bearer("alice")...)
	require.Equal(t, 404, status, "no team is named")
	c := r.open(pathTeams+team.Entity.String(), "", bearer("alice")...)
	c.welcomed(team.Entity.String())
	d.srv.Stop()
	r.open(pathTeams+team.Entity.String(), "", bearer("alice")...).turnedAway(fault.BusUnavailable, 1013)
	r.relays(team, "Coder", 1, piece("goes on"))
	c.crewSaid("member")
	c.crewSaid("event")
	require.Contains(t, string(c.crewSaid("event").Data), "goes on", "who is there stays")
}

// A socket that is open is told of a drain, and so is one that waits for the team
// service.
func TestDrainOfSocketsOfTeams(t *testing.T) {
	t.Parallel()
	r, d := manned(t, func(c *gateway.Config, _ *gateway.Deps) { c.DrainSpread = 1 })
	l := r.runLog(id.KindTeam, "default")
	c := r.open(pathTeams+l.Entity.String(), "")
	c.welcomed(l.Entity.String())
	c.crewSaid("member")
	c.crewSaid("event")
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

// A viewer of a team that does not read is kept for no more than its queue, and gets
// every frame in the end: once, in order, whatever of an event the queue had room for.
func TestAViewerOfATeamThatStopsReading(t *testing.T) {
	const bound, events = 64 << 10, 60
	r, d := manned(t, func(c *gateway.Config, _ *gateway.Deps) { c.QueueBytes = bound })
	d.crowd = 2000 // the welcome alone is larger than the queue
	settled := r.settled()
	l := r.runLog(id.KindTeam, "default")
	sleeper, awake := r.open(pathTeams+l.Entity.String(), "after=0"), r.open(pathTeams+l.Entity.String(), "after=0")
	big := strings.Repeat("x", 20<<10)
	read := make(chan []uint64, 2)
	see := func(c *client) {
		var at []uint64
		defer func() { read <- at }()
		for n := 0; n < 1+d.crowd+1+events*3; n++ {
			b, err := c.text()
			if err != nil {
				t.Errorf("frame %d: %v", n, err)
				return
			}
			var f crewFrame
			if err := json.Unmarshal(b, &f); err != nil {
				t.Error(err)
				return
			}
			if f.Kind == "event" {
				at = append(at, f.At)
			}
		}
	}
	go see(awake)
	most := 0.0
	for i := range events {
		r.relays(l, "Coder", uint64(i+1), ended(big))
		most = max(most, r.metric("waggle_gateway_queue_bytes"))
	}
	want := []uint64{16 + 15}
	for seq := uint64(2); seq < events+2; seq++ {
		want = append(want, seq*16, seq*16+1, seq*16+15)
	}
	require.Equal(t, want, <-read)
	eventually(t, "the sleeper has left live mode", func() bool { return r.metric("waggle_gateway_lag_entries_total") >= 1 })
	eventually(t, "no more waits for the sleeper than its queue holds", func() bool { return r.metric("waggle_gateway_queue_bytes") <= bound })
	go see(sleeper)
	require.Equal(t, want, <-read)
	r.relays(l, "Coder", events+1, piece("live again"))
	for _, c := range []*client{sleeper, awake} {
		require.Contains(t, string(c.crewSaid("event").Data), "live again")
		c.leave()
	}
	settled()
	t.Logf("%d MB for each viewer; at most %d KB waited for both", events*3*20>>10, int(most)>>10)
}
