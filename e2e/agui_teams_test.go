package e2e_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/models"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
)

// site is a team with a team in it.
var site = object{
	"name": "site", "coordinator": "Boss",
	"members": []object{
		{"name": "Boss"},
		{"name": "Coder", "role": "codes", "tools": []string{"workspace/write_file"}},
		{"name": "backend", "team": object{"name": "backend", "coordinator": "Lead", "members": []object{{"name": "Lead"}, {"name": "Tester"}}}},
	},
}

// TestAGUIClientsOfOthersInTeams drives the clients that are published, unmodified, through what teams do: one member asks another, also
// in a team in the team; a board, questions of several members, a failure, and work that is stopped.
func TestAGUIClientsOfOthersInTeams(t *testing.T) {
	t.Parallel()
	dir := packages(t, "agui")
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	cast := paperCast(never)
	for cue, replies := range (models.Team{
		"Boss: build":            {models.Writes("Coder", "code"), models.Says("I have asked Coder.")},
		"Coder: Boss says code":  {models.Writes("Boss", "coded"), models.Says("It is coded.")},
		"Boss: Coder says coded": {models.Says("All is built.")},
		"Boss: deep":             {models.Writes("backend", "dig"), models.Says("I have asked backend.")},
		"Lead: Boss says dig":    {models.Writes("Tester", "test"), models.Says("I have asked Tester.")},
		"Tester: Lead says test": {models.Says("It is tested.")},
		"Boss: have it written":  {models.Writes("Coder", "write"), models.Says("I have asked Coder.")},
		"Coder: Boss says write": {writesFile("it.txt", "it"), models.Says("It is written.")},
		"Lead: say it":           {models.Says("I say it.")},
		"Boss: go on for ever":   {models.Holds(never)},
		"Boss: hello":            {models.Says("hello to you")},
		"Boss: fail":             {},
	}) {
		cast[cue] = replies
	}
	c := newTeamFleet(t, cast.Script())
	for _, client := range published() {
		t.Run(client, func(t *testing.T) {
			bases := map[string]string{}
			for _, flow := range []string{"team", "nested", "asked", "member", "cancelled", "failed", "paper"} {
				definition := site
				if flow == "paper" {
					definition = paper
				}
				bases[flow] = "/agui/teams/" + c.found(definition).TeamID
			}
			teams, err := json.Marshal(bases)
			require.NoError(t, err)
			worked(t, drive(t, dir, c.addr, client, string(teams)))
		})
	}
}

// worked checks what a client has seen of teams.
func worked(t *testing.T, d driven) {
	t.Helper()
	require.Empty(t, d.Invalid)
	older := d.Client != "@ag-ui/client"
	if !older {
		require.Empty(t, d.Warnings)
	}
	for flow, want := range map[string]struct{ end, text string }{
		"team":      {wire.OutcomeSuccess, "All is built."},
		"nested":    {wire.OutcomeSuccess, "It is tested."},
		"asked":     {wire.OutcomeSuccess, "It is written."},
		"member":    {wire.OutcomeSuccess, "I say it."},
		"cancelled": {wire.OutcomeCancelled, ""},
		"failed":    {wire.OutcomeSuccess, "hello to you"},
		"paper":     {wire.OutcomeSuccess, "The draft is there."},
	} {
		got := d.Flows[flow]
		require.NotEmpty(t, got.Runs, flow)
		last := got.Runs[len(got.Runs)-1]
		require.Contains(t, got.Text, want.text, flow)
		if older && want.end == wire.OutcomeCancelled {
			require.NotNil(t, last.Failure, "%s: %+v", flow, last)
			require.Equal(t, "RUN_CANCELLED", last.Failure.Code)
			continue
		}
		require.Empty(t, last.Thrown, flow)
		require.NotNil(t, last.Outcome, "%s: %+v", flow, last)
		require.Equal(t, want.end, last.Outcome.Type, flow)
	}
	require.NotNil(t, d.Flows["failed"].Runs[0].Failure)
	require.Greater(t, len(d.Flows["paper"].Runs), 1, "people are asked")
	require.Len(t, d.Flows["asked"].Runs, 2)
	require.Equal(t, older, d.Types[wire.SubagentStarted] == 0)
	for _, name := range []string{wire.ActivitySnapshot, wire.ActivityDelta, wire.Custom} {
		require.Positive(t, d.Types[name], name)
	}
}
