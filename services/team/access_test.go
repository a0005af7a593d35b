package team_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/team"
)

// asker is a principal that asks for teams.
type asker struct {
	name string
	all  bool // an operator, or a viewer in requests
	sees bool
}

// askers are the owner and others, who see its team if all of the tenant do.
func askers(see string) []asker {
	return []asker{{"alice", false, true}, {"bob", false, see == access.Tenant}, {"operator", true, true}}
}

// requests returns what answers of the service show of the team.
func (r *rig) requests(l subject.Log, who asker) map[string]error {
	var attached cmd.TeamAttachReply
	var v cmd.TeamView
	ask := cmd.TeamAttachRequest{Tenant: tenant, Principal: who.name, All: who.all, Kind: id.KindTeam, ID: l.Entity}
	out := map[string]error{
		"show":   rpc.Call(r.Ctx, r.Conn, cmd.Team, cmd.ShowTeam, cmd.TeamRequest{Tenant: tenant, Principal: who.name, All: who.all, TeamID: l.Entity.String()}, &v),
		"attach": rpc.Call(r.Ctx, r.Conn, cmd.Team, cmd.AttachTeam, ask, &attached),
	}
	ask.Kind, ask.ID = id.KindMember, agentOf(r.T, l, "Lead").Entity
	out["attach to a member"] = rpc.Call(r.Ctx, r.Conn, cmd.Team, cmd.AttachTeam, ask, &attached)
	return out
}

// TestWhoSeesATeam: to others than the owner, the operators and those whom the settings name a team does not exist, in answers as in
// refusals.
func TestWhoSeesATeam(t *testing.T) {
	t.Parallel()
	for _, see := range []string{"", access.Tenant} {
		r := newRig(t)
		r.cast.plays(leave)
		r.start("one", team.Config{Access: access.Policy{Default: access.Settings{See: see}}})
		l, none := r.found(teamOf("outer", agent("Lead"))), teamLog(id.EntityFromExternal("team_0000000000000000"))
		r.message(l, "m0", "", "go")
		r.untilInner(l, event.RunStarted, 1)
		absent := r.requests(none, asker{name: "alice", all: true})
		for _, who := range askers(see) {
			for what, err := range r.requests(l, who) {
				if who.sees {
					require.NoError(t, err, "%s of %s, see %q", what, who.name, see)
				} else {
					require.EqualError(t, err, absent[what].Error(), "%s of %s, see %q", what, who.name, see)
				}
			}
			var list cmd.TeamList
			require.NoError(t, rpc.Call(r.Ctx, r.Conn, cmd.Team, cmd.ListTeams, cmd.TeamRequest{Tenant: tenant, Principal: who.name, All: who.all}, &list))
			require.Equal(t, who.sees, len(list.Teams) == 1, "%s, see %q", who.name, see)
		}
		heard := r.directTo("c0")
		commands := func(to subject.Log, prefix string, who asker) []event.CommandRefusedData {
			var out []event.CommandRefusedData
			for _, c := range []struct {
				verb id.Name
				data any
			}{
				{cmd.SendMessage, cmd.UserMessage{Content: "hi"}},
				{cmd.Cancel, cmd.CancelRun{All: true}},
				{cmd.Answer, cmd.AnswerQuestion{CallID: "c", Approved: true}},
				{cmd.PauseTeam, struct{}{}},
				{cmd.ResumeTeam, struct{}{}},
				{cmd.CloseTeam, cmd.CloseSession{}},
			} {
				r.Command(cmd.Command{
					ID: prefix + c.verb.String(), Service: cmd.Team, Verb: c.verb, Tenant: tenant, Key: to.Entity, Principal: who.name, Operator: who.all,
					ReplyTo: subject.ReplyTo(gateway, id.MustName("c0")),
				}, c.data)
				if !who.sees {
					refused := hears[event.CommandRefusedData](t, heard)
					refused.CommandID = ""
					out = append(out, refused)
				}
			}
			return out
		}
		bob := askers(see)[1]
		if !bob.sees {
			refused := commands(l, "a", bob)
			require.Equal(t, commands(none, "b", bob), refused)
			require.Equal(t, string(fault.TeamNotFound), refused[0].Code)
			bob.name, bob.all = "operator", true
		}
		bob.sees = true
		commands(l, "c", bob)
		whole := r.Until(l, event.TeamClosed, 1)
		require.Equal(t, 2, servicetest.Count(whole, event.TeamMessage), "those of alice and of who may, see %q", see)
		for _, once := range []event.Type{event.TeamStopped, event.TeamPauseBegun, event.TeamResumed} {
			require.Equal(t, 1, servicetest.Count(whole, once), "%s, see %q", once, see)
		}
	}
}
