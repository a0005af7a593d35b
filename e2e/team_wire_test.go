package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// peeled takes the layers of nested teams off an envelope, as many as depth says, and
// then that of an agent if it is wanted. ok is false if it has not that many.
func peeled(raw string, depth int, agent bool) (inner string, ok bool) {
	at := json.RawMessage(raw)
	for i := range depth + 1 {
		var e struct {
			Data struct {
				Team  json.RawMessage `json:"sub_team_event"`
				Agent json.RawMessage `json:"agent_event"`
			} `json:"data"`
		}
		switch {
		case i == depth && !agent:
			return string(at), true
		case json.Unmarshal(at, &e) != nil:
			return "", false
		case i == depth:
			return string(e.Data.Agent), e.Data.Agent != nil
		}
		if at = e.Data.Team; at == nil {
			return "", false
		}
	}
	return string(at), true
}

// below returns the frames of an envelope viewer about a route and below, peeled.
func below(c *client.Team, route string, agent bool) (out []string) {
	depth := strings.Count(route, "/")
	if !agent {
		depth++
	}
	for _, f := range c.Frames() {
		if at := f.Route(); at != route && (agent || !strings.HasPrefix(at, route+"/")) {
			continue
		}
		if raw, ok := peeled(f.Raw, depth, agent); ok {
			out = append(out, raw)
		}
	}
	return out
}

// sockets compares what the viewers of the team were sent with what the sockets of its
// agents and nested teams are sent, and with what those are who come late.
func (p *teamScenario) sockets(l memberLogs) {
	late := p.c.watch("agent-team/"+p.team.TeamID, false)
	lateDeep := p.c.watch("agent-team/"+p.team.TeamID, true)
	for _, two := range [][2]*client.Team{{p.flat, late}, {p.deep, lateDeep}} {
		n := len(p.flat.Frames())
		process.Eventually(p.t, "everything is shown", func() bool { return len(two[0].Frames()) >= n && len(two[1].Frames()) >= n })
		require.Equal(p.t, texts(two[0]), texts(two[1]), "who comes late is sent the same bytes")
	}
	for _, route := range l.agents {
		sameAsOwn(p.t, p.deep, p.c.watch("agent/"+l.ids[route], true), route, true)
	}
	for _, route := range l.teams[1:] {
		sameAsOwn(p.t, p.deep, p.c.watch("agent-team/"+l.ids[route], true), route, false)
	}
}

// sameAsOwn requires that what a team's viewer was sent of a member is what the member's
// own socket is sent, byte for byte. That also tells statuses that have not changed.
func sameAsOwn(t *testing.T, team, own *client.Team, route string, agent bool) {
	t.Helper()
	want := below(team, route, agent)
	require.NotEmpty(t, want, route)
	own.Until("the end of "+route, func(f client.TeamFrame) bool { return f.Raw == want[len(want)-1] })
	i, more := 0, 0
	for _, raw := range texts(own) {
		if i < len(want) && raw == want[i] {
			i++
			continue
		}
		require.True(t, agent && strings.Contains(raw, `"event_type":"agent_status_updated"`), "%s: the team has\n%s\nand its own socket\n%s", route, want[min(i, len(want)-1)], raw)
		more++
	}
	require.Len(t, want, i, route)
	t.Logf("%s: %d frames byte for byte, %d statuses more on its own socket", route, i, more)
}

func texts(c *client.Team) (out []string) {
	for _, f := range c.Frames() {
		out = append(out, f.Raw)
	}
	return out
}
