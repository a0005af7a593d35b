package gateway_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/dialect/team"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// What goes wrong on a socket of a team is said in the name of its coordinator, whom every
// client knows; on any other socket in no name.
func TestFaultsOfATeamHaveItsCoordinator(t *testing.T) {
	r, _ := manned(t)
	l := r.runLog(id.KindTeam, "default")
	for _, c := range []*client{r.open(pathTeams+l.Entity.String(), ""), r.open(pathRuns, "watch=team/"+l.Entity.String())} {
		c.welcomed(l.Entity.String())
		c.crewSaid("member")
		c.crewSaid("event")
		c.commands("jump", "", "")
		f := c.crewSaid("failed")
		require.Equal(t, []string{string(fault.UnknownType), "m0"}, []string{f.Code, f.Who})
		c.leave()
	}
	session := r.runLog(id.KindSession, "default")
	c := r.open(pathRuns, "watch=session/"+session.Entity.String())
	c.welcomed(session.Entity.String())
	c.crewSaid("event")
	c.commands("jump", "", "")
	require.Empty(t, c.crewSaid("failed").Who)
}

// What a team refuses has the member whom it concerns, and its coordinator where it
// concerns none.
func TestRefusalsOfATeamHaveItsCoordinator(t *testing.T) {
	r, _ := manned(t, func(_ *gateway.Config, dep *gateway.Deps) {
		dep.Routes = map[string]gateway.Route{"/ws/agent-team/{team_id}": gateway.Team(team.Teams()), pathSessions: gateway.Multi(talk{})}
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
		r.aside(to, l, event.CommandRefusedData{Code: "QUEUE_FULL", Message: "no", AgentName: given})
		for {
			kind, code, agent := next()
			if kind == "ERROR" {
				require.Equal(t, []string{"QUEUE_FULL", want}, []string{code, agent})
				break
			}
		}
	}
}

// after=current shows what is on from its beginning; without after what was said lately is
// shown as well.
func TestATeamIsShownFromWhereItIs(t *testing.T) {
	r, d := manned(t)
	l := r.runLog(id.KindTeam, "default")
	for i := range 4 {
		r.relays(l, "Coder", uint64(i+1), piece(fmt.Sprint(i)))
	}
	d.mu.Lock()
	d.recent, d.from = 2, 4
	d.mu.Unlock()
	for query, first := range map[string]uint64{"": 3, "after=current": 5, "after=0": 1} {
		c := r.open(pathTeams+l.Entity.String(), query)
		c.welcomed(l.Entity.String())
		c.crewSaid("member")
		for seq := first; seq <= 5; seq++ {
			require.Equal(t, seq, c.crewSaid("event").At>>4, query)
		}
		c.leave()
	}
	session := r.runLog(id.KindSession, "default")
	r.open(pathRuns, "after=current&watch=session/"+session.Entity.String()).turnedAway(fault.CursorInvalid, 4422)
}

// That a part of the history has expired is told to those only who asked for it.
func TestExpiredHistoryOfATeam(t *testing.T) {
	r, _ := manned(t)
	l := r.runLog(id.KindTeam, "default")
	for i := range 4 {
		r.relays(l, "Coder", uint64(i+1), piece(fmt.Sprint(i)))
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
		s.welcomed(name)
		s.crewSaid("member")
		if c.told {
			require.EqualValues(t, 4, s.crewSaid("truncated").At, c.query)
		}
		for seq := uint64(4); seq <= 5; seq++ {
			require.Equal(t, seq, s.crewSaid("event").At>>4, c.query)
		}
		s.leave()
	}
}
