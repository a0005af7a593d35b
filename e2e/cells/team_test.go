package cells_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/sdk/go/waggle"
)

// TestATeamMovesWithItsTenant: a viewer of the team stays, the team works on in the new cell and back in the old one, and each
// position of the team's log comes once.
func TestATeamMovesWithItsTenant(t *testing.T) {
	s := newSite(t)
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	w, err := waggle.Open(ctx, "ws://"+s.cells["b"].addr, waggle.Options{Token: redKey})
	require.NoError(t, err)
	var d waggle.TeamDefinition
	require.NoError(t, json.Unmarshal([]byte(`{"name":"pair","coordinator":"Lead","members":[{"name":"Lead","role":"leads"}]}`), &d))
	v, err := w.CreateTeam(ctx, d)
	require.NoError(t, err)
	team := w.Team(v.TeamID, waggle.TeamOptions{All: true})
	defer team.Close()
	ask := func(text string) {
		message, err := team.Send(text, "")
		require.NoError(t, err)
		accepted := 0
		for ran, idle := false, false; accepted == 0 || !idle; { // the answer has no place among the events
			f, err := team.Next(ctx)
			require.NoError(t, err)
			if f.Type == "MESSAGE_ACCEPTED" && f.Payload.MessageID == message {
				accepted++
			}
			require.LessOrEqual(t, accepted, 1)
			if f.Type == "TEAM_STATUS" {
				ran = ran || f.Payload.NewStatus == "RUNNING"
				idle = ran && f.Payload.NewStatus == "IDLE"
			}
		}
	}
	ask("What is 1 + 1?")
	for i, way := range [][2]string{{"a", "b"}, {"b", "a"}} {
		t.Log(s.command(way[0], "cells", "move", "red", "--to", s.cells[way[1]].file))
		ask(fmt.Sprintf("What is %d + 2?", i))
	}
	shown, err := w.ShowTeam(ctx, v.TeamID)
	require.NoError(t, err)
	require.Equal(t, v.TeamID, shown.TeamID)
	require.NoError(t, w.CloseTeam(ctx, v.TeamID))
}
