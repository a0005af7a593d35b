package team

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/teamwork"
)

// TestNoMessageOvertakesTheStartOfItsMember: the relay sends what follows from the log while a command appends to it,
// so it sees the log between a member's first message and the event that starts the member.
func TestNoMessageOvertakesTheStartOfItsMember(t *testing.T) {
	t.Parallel()
	team := id.EntityFromExternal("t")
	var st teamwork.State
	seq := uint64(0)
	due := func() (verbs []string) {
		all, err := commands(&st, id.DefaultTenant)
		require.NoError(t, err)
		for _, c := range all {
			verbs = append(verbs, c.Verb.String()+" "+c.Key.String())
		}
		return verbs
	}
	member := func(name string) string {
		m, err := id.MemberAgent(team, name)
		require.NoError(t, err)
		return m.String()
	}
	create := func(name string) string { return cmd.CreateMember.String() + " " + member(name) }
	send := func(name string) string { return cmd.SendMessage.String() + " " + member(name) }

	c := cmd.Command{ID: "c", Service: cmd.Team, Verb: cmd.CreateTeam, Tenant: id.DefaultTenant, Key: team, Data: encode(cmd.NewTeam{
		Definition: event.TeamDefinition{Name: "pair", Coordinator: "Lead", Members: []event.MemberDefinition{{Name: "Lead"}, {Name: "Coder"}}},
	})}
	sent := map[string]bool{}
	step := func() {
		for {
			d, err := st.Decide(c, time.Unix(0, 0))
			require.NoError(t, err)
			if len(d.Facts) == 0 {
				return
			}
			for _, f := range d.Facts {
				seq++
				e, err := event.New(subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTeam, Entity: team}, f.ID, "test", time.Unix(0, 0), f.Data)
				require.NoError(t, err)
				e.Sequence = seq
				require.NoError(t, st.Apply(e))
				for _, v := range due() {
					for _, name := range []string{"Lead", "Coder"} {
						require.False(t, v == send(name) && !sent[create(name)], "after event %d, %s: %v", seq, f.ID, due())
					}
					sent[v] = true
				}
			}
		}
	}
	step()
	c = cmd.Command{ID: "m", Service: cmd.Team, Verb: cmd.SendMessage, Tenant: id.DefaultTenant, Key: team, Member: "Coder", Data: encode(cmd.UserMessage{Content: "hello"})}
	step()
	require.Equal(t, []string{create("Lead"), create("Coder"), send("Coder")}, due())
}
