package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestAllClientsShareOneSwarm: sessions have tasks solved by an agent of the swarm, and a
// chat calls the tool of a service of the swarm.
func TestAllClientsShareOneSwarm(t *testing.T) {
	t.Parallel()
	var chats atomic.Int64
	p, cast := apart.forTenant(t, scripted.Stages{
		Plan: func(x *scripted.Exchange) scripted.Reply {
			return scripted.Plan(event.Step{ID: "weld", Title: x.Data.Question, Capability: "welding"}, event.Step{ID: "paint", Title: "Paint", Dependencies: []string{"weld"}})
		},
		Solve: func(x *scripted.Exchange) scripted.Reply {
			out := "painted"
			for _, in := range x.Data.Inputs {
				out += " " + in.Output
			}
			return say(out)
		},
		Chat: func(x *scripted.Exchange) scripted.Reply {
			last := x.Prompt.Messages[len(x.Prompt.Messages)-1]
			if last.Role == model.RoleTool {
				return say("The service says: " + last.Content)
			}
			chats.Add(1)
			for _, tool := range x.Prompt.Tools {
				if tool.Name == "weather_forecast" && strings.Contains(string(tool.InputSchema), "city") {
					return scripted.Stream(scripted.Calls(0, scripted.Call{ID: "c1", Name: tool.Name, Arguments: `{"city":"Oslo"}`}))
				}
			}
			return say("There is no such tool.")
		},
	}.Script())
	cue := " " + cast.cue
	welder := p.swarm().agent("welder-1", "Welder", nil, "welding")
	m := p.myagent()
	m.Create("en_US", nil)
	solved := func(question, title, says string) {
		t.Helper()
		task := welder.Until("task.execute")
		var data struct{ ID, Title, Question string }
		require.NoError(t, json.Unmarshal(task.Member("data"), &data))
		require.Equal(t, "weld", data.ID)
		require.Equal(t, title, data.Title)
		require.Equal(t, question, data.Question)
		welder.Say("task.notification", object{"taskId": task.Text("taskId"), "notificationType": "progress", "message": "sparks"})
		welder.Say("agent.task.result", object{"taskId": task.Text("taskId"), "result": object{"text": says}})
	}

	t.Run("tasks of the client", func(t *testing.T) {
		list := []event.Step{{ID: "weld", Title: "Weld" + cue, Capability: "welding"}, {ID: "paint", Title: "Paint", Dependencies: []string{"weld"}}}
		m.Send(myagent.UserSolveTasks, object{"content": object{"tasks": list}})
		solved("Weld"+cue+"; Paint", "Weld"+cue, "a gate")
		require.Contains(t, m.Until(myagent.AgentFinalAnswer, myagent.AgentError).Text(), "painted a gate")
		inOrder(t, m.Frames, myagent.SolverStart, myagent.SolverCompleted, myagent.SolverStart, myagent.SolverCompleted, myagent.AgentFinalAnswer)
	})
	t.Run("tasks of a plan", func(t *testing.T) {
		m.Message("make a fence"+cue, nil)
		solved("make a fence"+cue, "make a fence"+cue, "a fence")
		require.Contains(t, m.Until(myagent.AgentFinalAnswer, myagent.AgentError).Text(), "painted a fence")
	})
	t.Run("a session that is cancelled", func(t *testing.T) {
		m.Message("make a ship"+cue, nil)
		task := welder.Until("task.execute").Text("taskId")
		m.Send(myagent.UserCancel, object{"content": "enough"})
		m.Until(myagent.AgentInterrupted)
		require.Equal(t, task, welder.Until("task.cancel").Text("taskId"))
		welder.Say("agent.task.result", object{"taskId": task, "result": "a ship"})
		p.swarm().refused(task, "TASK_FINISHED", 1)
		m.Message("make a raft"+cue, nil)
		solved("make a raft"+cue, "make a raft"+cue, "a raft")
		require.Contains(t, m.Until(myagent.AgentFinalAnswer, myagent.AgentError).Text(), "painted a raft")
	})
	t.Run("a chat", func(t *testing.T) {
		cities := make(chan string, 9)
		sdkService(t, p.sdk(), "weather", swarm.Tool{
			ID: "forecast", Description: "tells the weather",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
			Run: func(ctx context.Context, c *swarm.ToolRun) (any, error) {
				var in struct{ City string }
				if err := c.Decode(&in); err != nil {
					return nil, err
				}
				cities <- in.City
				return "snow in " + in.City, c.Notify(ctx, swarm.Notification{Type: swarm.Progress, Message: "looking out"})
			},
		})
		process.Eventually(t, "the service is known", func() bool {
			return strings.Contains(over(t, http.MethodGet, p.url("/api/v1/services"), p.key), `"weather"`)
		})
		c := p.orbit("")
		c.Until("agent_ready")
		c.Ask("how is the weather in Oslo?" + cue)
		answer := c.Until("agent_response", "error")
		require.Contains(t, answer.Data.Message, "The service says: snow in Oslo")
		require.Equal(t, "Oslo", <-cities)
		require.Empty(t, cities, "it is called once")
		for _, f := range c.Frames {
			if f.Type == "tool_called" || f.Type == "tool_result" {
				require.Equal(t, "weather_forecast", f.Data.ToolName)
			}
		}
		require.Subset(t, c.Types(), []string{"tool_called", "tool_result", "agent_response"})
		require.EqualValues(t, 1, chats.Load())
	})
}
