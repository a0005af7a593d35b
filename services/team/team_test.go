package team_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/team"
)

func TestATeamAnswersAndItsLogHoldsAllThatItsMembersDo(t *testing.T) {
	r := newRig(t)
	r.start("one", team.Config{})
	l := r.found(deep())
	r.message(l, "m1", "", "hello")
	r.message(l, "m2", "Writer", "write")
	r.message(l, "m3", "backend/deep/Digger", "dig <b>&amp;</b> \u2028 \u0000 \"\\/ \U0001F600")
	r.untilInner(l, event.RunCompleted, 3)
	r.status(l, event.TeamIdle, 1)
	events := r.exact(l)
	require.Greater(t, events, 40)
	require.Len(t, r.cast.commands(cmd.SendMessage), 3)
	require.Len(t, r.cast.commands(cmd.CreateMember), 5, "members are started when they are needed, and coordinators with their team")
}
