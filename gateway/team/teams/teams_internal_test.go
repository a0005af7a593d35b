package teams

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// TestATeamNeedsATarget: a connection of teams names the run that it shows.
func TestATeamNeedsATarget(t *testing.T) {
	_, err := New(&binding.Gateway{Edge: &edge.Edge{}}, nil, nil, nil).resolve(context.Background())
	require.ErrorIs(t, err, fault.New(fault.RunNotFound))
}

// TestTheSpeaker: the coordinator speaks for a team that is shown, and no member for another run.
func TestTheSpeaker(t *testing.T) {
	view := func(agent *command.MemberView) *command.TeamAttachReply {
		v := &command.TeamAttachReply{Agent: agent}
		v.Definition.Coordinator = "Lead"
		return v
	}
	require.Equal(t, "Lead", start{view: view(nil)}.speaker())
	require.Empty(t, start{view: view(&command.MemberView{Name: "Coder"})}.speaker())
	require.Empty(t, start{}.speaker())
}
