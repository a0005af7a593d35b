package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestAStateMovesToAnotherCluster: exported in the middle of a run on one
// installation, imported on another with the same key, where the run goes on. One
// that was changed on the way, or signed with another key, is refused.
func TestAStateMovesToAnotherCluster(t *testing.T) {
	llm, err := scripted.Start("127.0.0.1:0", quick())
	require.NoError(t, err)
	t.Cleanup(func() { _ = llm.Close() })
	env := []string{
		"OPENAI_BASE_URL=" + llm.OpenAIBaseURL(), "OPENAI_API_KEY=" + process.Canary,
		"WAGGLE_SESSION_STATE_KEYS=" + strings.Repeat(process.Canary, 4),
	}
	_, here := up(t, env, "--model", "openai:x")
	_, there := up(t, env, "--model", "openai:x")
	_, stranger := up(t, env[:2], "--model", "openai:x")

	m := client.DialMyAgent(t, here)
	m.Create("en_US", map[string]any{"confirm_plan": true})
	m.Message("go", nil)
	question := m.Until(myagent.AgentUserConfirm)
	m.Send(myagent.UserRequestState, map[string]any{"metadata": map[string]any{"include_history": true, "max_history_events": 5}})
	exported := sdk.As[myagent.StateExportedMeta](m.Until(myagent.AgentStateExported).Metadata)
	require.Len(t, exported.History, 5)
	require.NotEmpty(t, exported.SignedState)

	restore := func(addr string, signed []byte) (*client.RawMyAgent, sdk.Frame) {
		o := client.DialMyAgent(t, addr)
		o.Send(myagent.UserReconnectWithState, map[string]any{"signed_state": json.RawMessage(signed)})
		return o, o.Until(myagent.AgentStateRestored, myagent.ErrorRecoveryFailed, myagent.ErrorValidation)
	}
	forged := strings.Replace(string(exported.SignedState), `Task a`, `Task z`, 1)
	require.NotEqual(t, string(exported.SignedState), forged)
	for addr, signed := range map[string]string{there: forged, stranger: string(exported.SignedState)} {
		_, f := restore(addr, []byte(signed))
		require.Equal(t, myagent.ErrorRecoveryFailed, f.Event)
		require.Equal(t, "STATE_TAMPERED", sdk.As[myagent.RecoveryFailedMeta](f.Metadata).ErrorType)
	}

	o, restored := restore(there, exported.SignedState)
	require.Equal(t, myagent.AgentStateRestored, restored.Event, "%s", restored.Raw)
	require.Equal(t, m.Session, restored.SessionID, "the session keeps its id")
	meta := sdk.As[myagent.StateRestoredMeta](restored.Metadata)
	require.Equal(t, "confirmation", meta.Stage)
	o.Session = restored.SessionID
	o.Send(myagent.UserResponse, map[string]any{"step_id": question.StepID, "content": map[string]any{"approved": true}})
	answer := o.Until(myagent.AgentFinalAnswer, myagent.AgentError)
	require.Equal(t, myagent.AgentFinalAnswer, answer.Event, "%s", answer.Raw)
	require.Contains(t, answer.Text(), "did a")
	inOrder(t, o.Frames, myagent.AgentStateRestored, myagent.SolverStart, myagent.SolverCompleted, myagent.PipelineCompleted, myagent.AgentFinalAnswer)
	require.Zero(t, count(o.Frames, myagent.PlanStart), "it goes on where it was")
	t.Logf("exported at seq %d with %d bytes, went on with %d events elsewhere", exported.LastSeq, exported.StateSize, len(logged(o.Frames)))
}
