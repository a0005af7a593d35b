package e2e_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestAGUITalksToAnAgentOfTheSwarm: under the base of an agent, a thread's messages are its tasks, with the client's state and the
// conversation so far. Its answers and failures are those of runs, and stopping a run stops it.
func TestAGUITalksToAnAgentOfTheSwarm(t *testing.T) {
	f := newFleet(t, scripted.Always(say("the model speaks")))
	f.configure("gateway: {message_rate: 1000, message_burst: 1000}\n")
	f.serve("session,pipeline,worker,tools,task")
	_, addr := f.gateway()
	painter := swarmRig{t: t, addr: addr}.agent("painter-1", "Painter of Houses", nil, "painting")
	c := aguiClient{t: t, addr: addr}
	const base = "/agents/Painter%20of%20Houses"
	thread := newRun()
	done := make(chan []aguiFrame, 1)
	ask := func(text string, change func(map[string]any)) {
		go func() { done <- c.runAt(base, thread, newRun(), text, change) }()
	}
	type told struct {
		Content string
		Facts   []struct{ Value string }
		History []struct{ Role, Content string }
		AGUI    struct{ State struct{ Colour string } }
	}

	ask("paint it", func(in map[string]any) {
		in["state"] = object{"colour": "green"}
		in["context"] = []any{object{"description": "what it is", "value": "a house"}}
	})
	task := painter.Until("task.execute")
	var m told
	require.NoError(t, decodeMember(task, "data", &m), "%s", task.Content)
	require.Equal(t, "paint it", m.Content)
	require.Equal(t, "green", m.AGUI.State.Colour)
	require.Equal(t, "a house", m.Facts[0].Value)
	painter.Say("agent.task.result", object{"taskId": task.Text("taskId"), "result": object{"text": "it is green"}})
	frames := <-done
	require.Equal(t, "it is green", speech(frames))
	require.Equal(t, wire.OutcomeSuccess, frames[len(frames)-1].Outcome.Type)

	require.Equal(t, "the model speaks", speech(c.run(thread, newRun(), "and you?", nil)), "the same thread, without an agent")

	ask("paint more", nil)
	task = painter.Until("task.execute")
	require.NoError(t, decodeMember(task, "data", &m))
	require.Len(t, m.History, 4)
	require.Equal(t, "the model speaks", m.History[3].Content)
	painter.Say("task.error", object{"taskId": task.Text("taskId"), "error": "there is no paint"})
	frames = <-done
	require.Equal(t, wire.RunError, frames[len(frames)-1].Type)
	require.Contains(t, frames[len(frames)-1].data, "there is no paint")

	ask("paint for ever", nil)
	task = painter.Until("task.execute")
	status, text := c.text(http.MethodPost, base+"/threads/"+thread+"/cancel", nil)
	require.Equal(t, http.StatusAccepted, status, text)
	require.Equal(t, task.Text("taskId"), painter.Until("task.cancel").Text("taskId"))
	frames = <-done
	require.Equal(t, wire.OutcomeCancelled, frames[len(frames)-1].Outcome.Type)

	status, text = c.text(http.MethodPost, "/agents/nobody", aguiInput(newRun(), newRun(), "hello", nil))
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, text, "AGENT_NOT_FOUND")
	var can wire.Capabilities
	_, text = c.text(http.MethodGet, base+"/capabilities", nil)
	require.NoError(t, json.Unmarshal([]byte(text), &can), text)
	require.Equal(t, "Painter of Houses", can.Identity.Name)
}
