//go:build nightly

package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestTheProcessOfTheAssistantIsKilled: another one finishes the answer.
func TestTheProcessOfTheAssistantIsKilled(t *testing.T) {
	f := newFleet(t, func(x *scripted.Exchange) scripted.Reply {
		if x.N == 1 {
			return scripted.Stream(scripted.Text("half an "), scripted.Hang())
		}
		return scripted.Stream(scripted.Text("a whole ", "answer"))
	})
	f.serve("session,pipeline,task,tools")
	doomed := f.serve("worker")
	_, addr := f.gateway()
	process.Eventually(t, "the assistant is there", func() bool {
		return strings.Contains(process.Get(t, "http://"+addr+"/api/v1/agents").Body, `"assistant"`)
	})
	c := swarmRig{t: t, addr: addr}.client()
	give(t, c, map[string]any{"capabilities": []string{"general"}, "taskData": "speak"})
	process.Eventually(t, "the model has begun", func() bool { return len(f.llm.Exchanges()) > 0 })
	f.serve("worker")
	doomed.Kill()
	require.JSONEq(t, `{"text":"a whole answer"}`, string(c.Until("client.agent.task.result").Member("result")))
}
