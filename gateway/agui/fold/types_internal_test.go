package fold

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Reasons for which a projection passes over a type.
const (
	elsewhere = "is in logs of another kind"
	inside    = "is work of the services, of which the client sees what follows"
	around    = "is around an event of a member, which is folded"
	over      = "ends the stream, which is told so"
	counts    = "counts what is folded: steps, and the end of the run"
	steps     = "is a step of a planned run, and members have none"
	delivery  = "says when messages are delivered, or that the end comes"
)

// others are types of logs that neither projection is made for.
var others = map[event.Type]string{
	event.InboxCreated: elsewhere, event.InboxRegistered: elsewhere, event.InboxMessaged: elsewhere,
	event.TaskCreated: elsewhere, event.TaskQueued: elsewhere, event.TaskAssigned: elsewhere, event.TaskReported: elsewhere,
	event.TaskNotified: elsewhere, event.TaskMessaged: elsewhere, event.TaskReleased: elsewhere, event.TaskRefused: elsewhere,
	event.TaskDeleted: elsewhere, event.TaskAsked: elsewhere, event.TaskAskExpired: elsewhere, event.TaskFinished: elsewhere,
	event.ChildCreated: elsewhere, event.ChildFinished: elsewhere,
	event.CallStarted: elsewhere, event.CallNotified: elsewhere, event.CallFinished: elsewhere,
	event.AttemptRefused: inside, event.ToolStarted: inside,
	event.SessionDeleted: over,
}

// passed are the other types that the projection of sessions and members passes over.
var passed = map[event.Type]string{
	event.SessionPaused: counts, event.SessionRestored: inside, event.MemberCreated: inside, event.MemberClosed: inside,
	event.RunProgressed: counts, event.PipelineCompleted: counts,
	event.TeamCreated: elsewhere, event.TeamMemberStarted: elsewhere, event.TeamStatus: elsewhere, event.TeamMessage: elsewhere,
	event.TeamMessageDropped: elsewhere, event.TeamMemberEvent: elsewhere, event.TeamSubTeamEvent: elsewhere, event.TeamStopped: elsewhere,
	event.TeamPauseBegun: elsewhere, event.TeamResumed: elsewhere, event.TeamClosing: elsewhere, event.TeamClosed: elsewhere,
	event.BoardCreated: elsewhere, event.BoardUpdated: elsewhere,
}

// passedInTeams are the other types that the projection of teams passes over.
var passedInTeams = map[event.Type]string{
	event.SessionCreated: elsewhere, event.SessionClosed: elsewhere, event.SessionPaused: elsewhere, event.SessionRestored: elsewhere,
	event.TeamMemberEvent: around, event.TeamSubTeamEvent: around, event.MemberCreated: inside, event.MemberClosed: inside,
	event.TeamMemberStarted: inside,
	event.TeamPauseBegun:    delivery, event.TeamResumed: delivery, event.TeamClosing: delivery,
	event.PlanStarted: steps, event.PlanCompleted: steps, event.PlanInvalid: steps, event.PlanCancelled: steps,
	event.StepStarted: steps, event.StepCompleted: steps, event.StepFailed: steps, event.StepCancelled: steps, event.StepRestarted: steps,
	event.AggregateStarted: steps, event.AggregateCompleted: steps, event.RunProgressed: steps, event.PipelineCompleted: steps,
	event.JobFailed: inside, event.RetryScheduled: inside, event.Error: inside,
}

// Each type of the catalogue is folded, or passed over for a reason: a new one fails here until it is in one of the lists.
func TestEachTypeIsFoldedOrPassedOver(t *testing.T) {
	for name, c := range map[string]struct {
		folded map[event.Type]func(*Thread, event.Event)
		passed map[event.Type]string
	}{
		"sessions and members": {handlers, passed}, "teams": {teamHandlers, passedInTeams},
	} {
		known := slices.Collect(maps.Keys(c.folded))
		for _, reasons := range []map[event.Type]string{others, c.passed} {
			for kind, reason := range reasons {
				require.NotEmpty(t, reason, kind)
				known = append(known, kind)
			}
		}
		var all []event.Type
		for _, info := range event.Catalogue {
			all = append(all, info.Type)
		}
		slices.Sort(all)
		slices.Sort(known)
		require.Equal(t, all, known, "%s: fold a new type in projection.go, or say here why it is passed over", name)
	}
}
