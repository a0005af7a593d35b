package conversation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/snapshot"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/plan"
)

var shownCalls = map[conversation.CallStatus]string{
	conversation.CallIntended: "called", conversation.CallStarted: "running", conversation.CallCompleted: "completed",
	conversation.CallFailed: "failed", conversation.CallUnknown: "unknown",
}

var shownSteps = map[plan.State]string{
	plan.Waiting: "waiting", plan.Running: "running", plan.Done: "completed", plan.Failed: "failed", plan.Cancelled: "cancelled",
}

// checkShown holds what people are shown of a conversation, after each of its events, to what the services decide with.
func checkShown(t require.TestingT, log []event.Event) {
	var state conversation.State
	state.Keep(-1)
	shown := snapshot.New(id.KindSession)
	for _, e := range log {
		require.NoError(t, state.Apply(e))
		shown.Take(e)
		talk := shown.Snapshot(id.EntityFromExternal("s")).Conversation
		active := []string{}
		for _, r := range state.Runs() {
			if !r.Status.Terminal() {
				active = append(active, r.ID)
			}
		}
		require.Equal(t, active, talk.Active, "after %d, %s", e.Sequence, e.Type)
		for _, i := range talk.Items {
			switch i.Kind {
			case "tool":
				if c := state.Call(i.ID); c != nil && c.RunID == i.Run {
					require.Equal(t, shownCalls[c.Status], i.Status, "after %d, %s: call %s", e.Sequence, e.Type, i.ID)
				}
			case "plan":
				checkPlan(t, e, state.Run(i.Run), i)
			}
		}
	}
}

// checkPlan compares the steps of a plan that is carried out, if the state still knows it. A step that waits for its next try is shown as running.
func checkPlan(t require.TestingT, e event.Event, r *conversation.Run, i wire.SnapshotItem) {
	if r == nil || r.Status.Terminal() || !r.Plan.Planned || r.Plan.PlanID != i.ID {
		return
	}
	for _, s := range i.Steps {
		task := r.Plan.Step(s.ID)
		require.NotNil(t, task, "after %d, %s: step %s", e.Sequence, e.Type, s.ID)
		if task.Retry == nil {
			require.Equal(t, shownSteps[task.State], s.Status, "after %d, %s: step %s", e.Sequence, e.Type, s.ID)
		}
	}
}

// TestRecordedConversationsAreShownAsTheyAre, and in anyhistory_test.go any others.
func TestRecordedConversationsAreShownAsTheyAre(t *testing.T) {
	for name, history := range histories {
		t.Run(name, func(t *testing.T) { checkShown(t, history()) })
	}
}
