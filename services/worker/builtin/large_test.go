package builtin_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/payload"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/worker/builtin"
)

// TestLargeDataOfATask: the model is told the beginning of it, and of what the client says
// on the way; an answer that is too large for a command is stored. A task whose data is
// lost fails.
func TestLargeDataOfATask(t *testing.T) {
	answer := strings.Repeat("<", 100<<10) // which is six times as long where it is escaped
	hold := make(chan struct{})
	r := newRig(t, func(x *scripted.Exchange) scripted.Reply {
		if x.N == 1 {
			return scripted.Stream(scripted.Gate(hold), scripted.Text("wait"))
		}
		return scripted.Stream(scripted.Text(answer))
	})
	r.assistant(builtin.Config{})
	store := payload.New(r.Conn)
	give := func(taskID string, ref *event.ObjectRef) subject.Log {
		var v cmd.TaskView
		r.ask(id.DefaultTenant, cmd.Submit, cmd.NewTask{TaskID: taskID, AgentName: "assistant", Data: json.RawMessage("null"), DataRef: ref}, &v)
		return subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTask, Entity: id.EntityFromExternal(v.TaskID)}
	}
	about := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTask, Entity: id.EntityFromExternal("t1")}
	stored := func(text string) *event.ObjectRef {
		ref, err := store.Put(r.Ctx, about, servicetest.JSON(t, map[string]string{"question": text, "more": strings.Repeat("x", 300<<10)}))
		require.NoError(t, err)
		return ref
	}
	log := give("t1", stored("what is it?"))
	r.Until(builtin.SessionOf(log), event.JobStarted, 1)
	r.command(log, cmd.MessageTask, "m1", cmd.TaskMessage{TaskID: "t1", MessageRef: stored("and that?")})
	r.Until(log, event.TaskMessaged, 1)
	r.Until(builtin.SessionOf(log), event.MessageReceived, 2) // before the run could end without it
	close(hold)
	end := r.end(log)
	require.Equal(t, []string{event.TaskEndCompleted, ""}, []string{end.Status, end.Error})
	require.NotNil(t, end.ResultRef)
	require.NoError(t, store.Fill(r.Ctx, log.Tenant, &end))
	var result struct{ Text string }
	require.NoError(t, json.Unmarshal(end.Result, &result))
	require.True(t, strings.HasPrefix(answer, result.Text), "what a model says is bounded")
	require.Greater(t, len(result.Text), 20<<10)
	asked := r.llm.Exchanges()
	require.Len(t, asked, 2)
	require.Contains(t, string(asked[0].Body), "what is it?")
	require.Contains(t, string(asked[0].Body), "[truncated]")
	require.Contains(t, string(asked[1].Body), "and that?")

	lost := stored("?")
	lost.Digest = strings.Repeat("0", subject.DigestHex)
	failed := r.end(give("t2", lost))
	require.Equal(t, []string{event.TaskEndFailed, string(fault.PayloadLost)}, []string{failed.Status, failed.Code})
	require.Len(t, r.llm.Exchanges(), 2, "the model is not asked")
}
