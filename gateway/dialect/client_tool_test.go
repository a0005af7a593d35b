package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/gateway/myagent"
	"github.com/waggle-dev/waggle/gateway/orbit"
	"github.com/waggle-dev/waggle/gateway/team"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestCallsOfClientsInAllDialects: who watches a run of another protocol sees which call waits for the client that offers the
// tool, and is not asked: an answer there could not carry the result.
func TestCallsOfClientsInAllDialects(t *testing.T) {
	log := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("one")}
	of := func(d event.Data) event.Event {
		e, err := event.New(log, "e1", "test", time.Unix(1, 0).UTC(), d)
		require.NoError(t, err)
		e.Sequence = 1
		return e
	}
	asked := of(event.InputRequestedData{
		InputID: "approve_c1", RunID: "r1", ExecutionID: "x1", Scope: event.ScopeClientTool, CallID: "c1", Tool: "where_am_i",
		Arguments: json.RawMessage(`{"exact":"yes"}`),
	})
	orbitCodec, err := orbit.Dialect().Bind(nil)
	require.NoError(t, err)
	sessions, err := myagent.New(myagent.Settings{}).Codec(map[string][]string{"language": {"en_US"}})
	require.NoError(t, err)
	teams, err := team.Teams().Codec(nil)
	require.NoError(t, err)
	for name, encode := range map[string]func(event.Event) [][]byte{
		"orbit": orbitCodec.Encode, "myagent": sessions.Encode, "team": teams.Encode, "asp": asp.Client(asp.Settings{}).Encode,
	} {
		var all []string
		for _, frame := range encode(asked) {
			all = append(all, string(frame))
		}
		text := strings.Join(all, "\n")
		require.Contains(t, text, "where_am_i", name)
		require.Contains(t, text, "exact", name)
		require.Contains(t, text, "waits for the client", name)
		for _, question := range []string{"approved", "May the plan", "agent.user_confirm", "TOOL_APPROVAL_REQUESTED", "task.requestmessage", `"question"`, "step_id\":\"plan"} {
			require.NotContains(t, text, question, name)
		}
	}
	result := ""
	for _, frame := range teams.Encode(of(event.InputAnsweredData{InputID: "approve_c1", RunID: "r1", Scope: event.ScopeClientTool, CallID: "c1", Tool: "where_am_i", Decision: event.DecisionApprove, Result: "Bern"})) {
		result += string(frame)
	}
	require.Contains(t, result, "TOOL_EXECUTION_SUCCEEDED")
	require.Contains(t, result, "Bern")
}
