package conversation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
)

// An agent that sends the id of its task back means that task.
func TestTheIDOfATaskOfTheSwarmSaysItself(t *testing.T) {
	one := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")}
	other := one
	other.Entity = id.EntityFromExternal("s2")
	for _, work := range []string{"run_1.t.weld.1", "run_1.t.weld.2", "", "ü"} {
		task := conversation.SwarmTask(one, work)
		require.Equal(t, task, id.EntityFromExternal(task).String())
	}
	require.NotEqual(t, conversation.SwarmTask(one, "run_1.t.weld.1"), conversation.SwarmTask(one, "run_1.t.weld.2"))
	require.NotEqual(t, conversation.SwarmTask(one, "run_1"), conversation.SwarmTask(other, "run_1"), "clients may choose the same id for messages to different logs")
}
