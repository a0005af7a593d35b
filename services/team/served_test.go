package team_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/team"
	"github.com/waggle-dev/waggle/services/worker/card"
)

// worker lists a worker in the directory.
func (r *rig) worker(name string, c card.Card) {
	r.T.Helper()
	raw, err := c.Data()
	require.NoError(r.T, err)
	var seat directory.Seat
	require.NoError(r.T, seat.Take(r.Ctx, r.Dir, directory.Member{What: directory.WhatService, Name: cmd.Worker, Instance: id.MustName(name), Data: raw}))
	r.T.Cleanup(func() { require.NoError(r.T, seat.Quit()) })
}

// TestADefinitionWithAMissingModelIsRefused: a definition with a model that no worker can ask is refused with the path
// of the member, at any depth, also for a configured definition. One worker is enough.
func TestADefinitionWithAMissingModelIsRefused(t *testing.T) {
	r := newRig(t)
	r.cast.plays(leave)
	with := func(model string) event.TeamDefinition {
		return teamOf("outer", agent("Lead"), node("inner", teamOf("inner", agent("Chief"), event.MemberDefinition{Name: "Coder", Model: model})))
	}
	r.start("one", team.Config{Teams: []event.TeamDefinition{with("anthropic:claude-x")}})
	found := func(in cmd.TeamRequest) error {
		in.Tenant, in.Principal = tenant, "alice"
		var v cmd.TeamView
		return rpc.Call(r.Ctx, r.Conn, cmd.Team, cmd.FoundTeam, in, &v)
	}
	asks := func(model string) error {
		d := with(model)
		return found(cmd.TeamRequest{Definition: &d})
	}
	require.NoError(t, asks("anthropic:claude-x"), "nobody is there to know")

	r.worker("w1", card.Card{Model: "openai:gpt-x", Providers: []string{"openai"}})
	r.worker("w2", card.Card{Model: "demo", Providers: []string{"demo"}})
	require.Eventually(t, func() bool { return len(card.Providers(r.Dir)) == 2 }, maxWait, time.Millisecond)
	for _, spec := range []string{"", "gpt-y", "openai:gpt-y", "demo"} {
		require.NoError(t, asks(spec), spec)
	}
	for _, err := range []error{asks("anthropic:claude-x"), found(cmd.TeamRequest{Named: "outer"})} {
		isFault(t, err, fault.TeamInvalid)
		require.Equal(t, "members[1].team.members[1].model", fault.From(err, "").Field)
		require.ErrorContains(t, err, "demo, openai")
	}
}
