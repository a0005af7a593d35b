package gateway_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/team"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Faults on the socket of a team carry the name of its coordinator, which every client knows;
// on other sockets they carry no name.
func TestFaultsOfATeamHaveItsCoordinator(t *testing.T) {
	r, _ := startTeams(t)
	l := r.runLog(id.KindTeam, "default")
	for _, c := range []*client{r.open(pathTeams+l.Entity.String(), ""), r.open(pathRuns, "watch=team/"+l.Entity.String())} {
		c.expectWelcome(l.Entity.String())
		c.expectTeamFrame("event")
		c.expectStatuses(1)
		c.sendTeam("jump", "", "")
		f := c.expectTeamFrame("failed")
		require.Equal(t, []string{string(fault.UnknownType), "m0"}, []string{f.Code, f.Who})
		c.leave()
	}
	session := r.runLog(id.KindSession, "default")
	c := r.open(pathRuns, "watch=session/"+session.Entity.String())
	c.expectWelcome(session.Entity.String())
	c.sendTeam("jump", "", "")
	require.Empty(t, c.expectTeamFrame("failed").Who)
}

// A team's refusal names the member that it concerns, otherwise the coordinator.
func TestRefusalsOfATeamHaveItsCoordinator(t *testing.T) {
	r, _ := startTeams(t, func(_ *gateway.Config, dep *gateway.Deps) {
		dep.Routes = map[string]gateway.Route{"/ws/agent-team/{team_id}": gateway.Team(team.Teams()), pathSessions: gateway.Multi(sessionProtocol())}
	})
	l := r.runLog(id.KindTeam, "default")
	c := r.open(pathTeams+l.Entity.String(), "after=0")
	next := func() (kind, code, agent string) {
		b, err := c.text()
		require.NoError(t, err)
		var f struct {
			Type    string `json:"type"`
			Payload struct {
				Code  string `json:"code"`
				Agent string `json:"agent_name"`
			} `json:"payload"`
		}
		require.NoError(t, json.Unmarshal(b, &f), "%s", b)
		return f.Type, f.Payload.Code, f.Payload.Agent
	}
	c.write(text(`{"type":"SEND_MESSAGE","payload":{"content":"hello"}}`))
	to := r.nextCommand(l.Entity.String()).ReplyTo
	for given, want := range map[string]string{"": "m0", "Coder": "Coder"} {
		r.sendDirect(to, l, event.CommandRefusedData{Code: "QUEUE_FULL", Message: "no", AgentName: given})
		for {
			kind, code, agent := next()
			if kind == "ERROR" {
				require.Equal(t, []string{"QUEUE_FULL", want}, []string{code, agent})
				break
			}
		}
	}
}

// after=current shows active runs from their beginning; without after, recent messages are shown
// as well.
func TestATeamIsShownFromItsCurrentPosition(t *testing.T) {
	r, d := startTeams(t)
	l := r.runLog(id.KindTeam, "default")
	for i := range 4 {
		r.relay(l, "Coder", uint64(i+1), messageDelta(fmt.Sprint(i)))
	}
	d.mu.Lock()
	d.recent, d.from = 2, 4
	d.mu.Unlock()
	for query, first := range map[string]uint64{"": 3, "after=current": 5, "after=0": 1} {
		c := r.open(pathTeams+l.Entity.String(), query)
		c.expectWelcome(l.Entity.String())
		for seq := first; seq <= 5; seq++ {
			require.Equal(t, seq, c.expectTeamFrame("event").At>>4, query)
		}
		c.expectStatuses(1)
		c.leave()
	}
	session := r.runLog(id.KindSession, "default")
	r.open(pathRuns, "after=current&watch=session/"+session.Entity.String()).expectRefusal(fault.CursorInvalid, 4422)
}

// Only clients that ask for an expired part of the history are told that it has expired.
func TestExpiredHistoryOfATeam(t *testing.T) {
	r, _ := startTeams(t)
	l := r.runLog(id.KindTeam, "default")
	for i := range 4 {
		r.relay(l, "Coder", uint64(i+1), messageDelta(fmt.Sprint(i)))
	}
	r.expire(l, 2)
	name := l.Entity.String()
	for _, c := range []struct {
		path, query string
		told        bool
	}{
		{pathTeams + name, "", false},
		{pathTeams + name, "after=current", true},
		{pathTeams + name, "after=31", true},
		{pathRuns, "watch=team/" + name, true},
	} {
		s := r.open(c.path, c.query)
		s.expectWelcome(name)
		if c.told {
			require.EqualValues(t, 4<<4, s.expectTeamFrame("truncated").At, c.query)
		}
		for seq := uint64(4); seq <= 5; seq++ {
			require.Equal(t, seq, s.expectTeamFrame("event").At>>4, c.query)
		}
		s.expectStatuses(1)
		s.leave()
	}
}
