package fold

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Reasons for which a chat passes over a type.
const (
	elsewhere = "is in logs of another kind"
	inside    = "is work of the services, of which the client sees what follows"
	over      = "ends the stream, which is told so"
	counts    = "counts what is folded: steps, and the end of the run"
)

// passed are the types that a chat passes over.
var passed = map[event.Type]string{
	event.InboxCreated: elsewhere, event.InboxRegistered: elsewhere, event.InboxMessaged: elsewhere,
	event.TaskCreated: elsewhere, event.TaskQueued: elsewhere, event.TaskAssigned: elsewhere, event.TaskReported: elsewhere,
	event.TaskNotified: elsewhere, event.TaskMessaged: elsewhere, event.TaskReleased: elsewhere, event.TaskRefused: elsewhere,
	event.TaskDeleted: elsewhere, event.TaskAsked: elsewhere, event.TaskAskExpired: elsewhere, event.TaskFinished: elsewhere,
	event.ChildCreated: elsewhere, event.ChildFinished: elsewhere,
	event.CallStarted: elsewhere, event.CallNotified: elsewhere, event.CallFinished: elsewhere,
	event.TeamCreated: elsewhere, event.TeamMemberStarted: elsewhere, event.TeamStatus: elsewhere, event.TeamMessage: elsewhere,
	event.TeamMessageDropped: elsewhere, event.TeamMemberEvent: elsewhere, event.TeamSubTeamEvent: elsewhere, event.TeamStopped: elsewhere,
	event.TeamPauseBegun: elsewhere, event.TeamResumed: elsewhere, event.TeamClosing: elsewhere, event.TeamClosed: elsewhere,
	event.BoardCreated: elsewhere, event.BoardUpdated: elsewhere,
	event.SessionCreated: inside, event.SessionRestored: inside, event.MemberCreated: inside, event.MemberClosed: inside,
	event.AttemptRefused: inside, event.ToolStarted: inside,
	event.SessionDeleted: over, event.SessionPaused: counts, event.RunProgressed: counts, event.PipelineCompleted: counts,
}

// Each type of the catalogue is folded, or passed over for a reason: a new one fails here until it is in one of the lists.
func TestEachTypeIsFoldedOrPassedOver(t *testing.T) {
	known := slices.Collect(maps.Keys(handlers))
	known = append(known, slices.Collect(maps.Keys(passed))...)
	var all []event.Type
	for _, info := range event.Catalogue {
		all = append(all, info.Type)
	}
	slices.Sort(all)
	slices.Sort(known)
	require.Equal(t, all, known, "fold a new type in on_runs.go, or say here why it is passed over")
}
