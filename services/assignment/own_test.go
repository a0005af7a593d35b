package assignment_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/assignment"
)

// TestServicesReportForTheBuiltInAgentOnly: a stolen key of a worker ends no task of an agent that a principal has registered.
func TestServicesReportForTheBuiltInAgentOnly(t *testing.T) {
	log := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTask, Entity: id.EntityFromExternal("t1")}
	for _, registered := range []bool{true, false} {
		var s assignment.State
		for i, d := range []event.Data{
			event.TaskCreatedData{TaskHead: event.TaskHead{TaskID: "t1"}},
			event.TaskAssignedData{TaskHead: event.TaskHead{TaskID: "t1", AgentID: "a1", Attempt: 1}, Registered: registered},
		} {
			e, err := event.New(log, string(rune('a'+i)), "test", time.Now(), d)
			require.NoError(t, err)
			e.Sequence = uint64(i + 1)
			require.NoError(t, s.Apply(e))
		}
		for _, verb := range []id.Name{command.FinishTask, command.NotifyTask} {
			may := func(agent string) bool {
				data, err := json.Marshal(command.TaskResult{TaskID: "t1", AgentID: agent})
				require.NoError(t, err)
				return s.MayReport(command.Command{Verb: verb, Data: data})
			}
			require.Equal(t, !registered, may("a1"))
			require.True(t, may("a2"), "the log ignores an agent that does not have the task")
			require.False(t, s.MayReport(command.Command{Verb: verb, Data: []byte("x")}))
		}
		require.True(t, s.MayReport(command.Command{Verb: command.CancelTask}))
	}
}
