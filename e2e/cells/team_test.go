package cells_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

// pair is a team that someone watches through the gateway of a cell.
type pair struct {
	t    *testing.T
	ctx  context.Context
	sdk  *waggle.Client
	id   string
	team *waggle.Team
}

// pair makes a team of the tenant whose user has the key.
func (s *site) pair(t *testing.T, cell, key string) *pair {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*process.MaxWait)
	t.Cleanup(cancel)
	w, err := waggle.Open(ctx, "ws://"+s.cells[cell].addr, waggle.Options{Token: key})
	require.NoError(t, err)
	var d waggle.TeamDefinition
	require.NoError(t, json.Unmarshal([]byte(`{"name":"pair","coordinator":"Lead","members":[{"name":"Lead","role":"leads"}]}`), &d))
	v, err := w.CreateTeam(ctx, api.NewTeam{TeamDefinition: d})
	require.NoError(t, err)
	p := &pair{t: t, ctx: ctx, sdk: w, id: v.TeamID, team: w.Team(v.TeamID, waggle.TeamOptions{All: true})}
	t.Cleanup(func() { p.team.Close() })
	return p
}

// ask gives the team something to do. It is accepted once, and done.
func (p *pair) ask(text string) {
	p.t.Helper()
	message, err := p.team.Send(text, "")
	require.NoError(p.t, err)
	accepted := 0
	for ran, idle := false, false; accepted == 0 || !idle; { // the answer has no place among the events
		f, err := p.team.Next(p.ctx)
		require.NoError(p.t, err)
		if f.Type == "MESSAGE_ACCEPTED" && f.Payload.MessageID == message {
			accepted++
		}
		require.LessOrEqual(p.t, accepted, 1)
		if f.Type == "TEAM_STATUS" {
			ran = ran || f.Payload.NewStatus == "RUNNING"
			idle = ran && f.Payload.NewStatus == "IDLE"
		}
	}
}

func (p *pair) close() {
	p.t.Helper()
	shown, err := p.sdk.ShowTeam(p.ctx, p.id)
	require.NoError(p.t, err)
	require.Equal(p.t, p.id, shown.TeamID)
	require.NoError(p.t, p.sdk.DeleteTeam(p.ctx, p.id))
}
