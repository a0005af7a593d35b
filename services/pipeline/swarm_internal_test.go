package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// An agent that sends the id of its task back means that task.
func TestTheIDOfATaskOfTheSwarmSaysItself(t *testing.T) {
	for _, work := range []string{"run_1.t.weld.1", "run_1.t.weld.2", "", "ü"} {
		task := swarmTaskID(work)
		require.Equal(t, task, id.EntityFromExternal(task).String())
	}
	require.NotEqual(t, swarmTaskID("run_1.t.weld.1"), swarmTaskID("run_1.t.weld.2"))
}
