package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// narrow makes frames of 64 KiB the largest.
func narrow(c *gateway.Config, _ *gateway.Deps) { c.Participants.ReadLimit = 64 << 10 }

// large is text beyond the limit of narrow.
var large = strings.Repeat("large ", 20_000)

// failing returns the result that a command of the task is, which has to be a failure
// because of its size.
func (s *swarm) failing(task string) wirecmd.TaskResult {
	s.t.Helper()
	cmd := s.nextCommand(task)
	require.Equal(s.t, wirecmd.FinishTask, cmd.Verb)
	var r wirecmd.TaskResult
	require.NoError(s.t, cmd.Decode(&r))
	require.True(s.t, r.Failed)
	require.Equal(s.t, string(fault.MessageTooBig), r.Code)
	require.Empty(s.t, r.Result)
	return r
}

// A result that is larger than a frame may be fails its task, wherever its frame names it.
// The socket stays, and the agent is not told.
func TestOversizedResults(t *testing.T) {
	s := startSwarm(t, narrow)
	agentID := unique()
	c := s.agent(agentID, "A")
	p := s.onlyEntry(wirecmd.ParticipantAgent, agentID)
	result, err := json.Marshal(large)
	require.NoError(t, err)
	for name, frame := range map[string]string{
		"as the SDK sends it":     `{"type":"agent.task.result","content":{"agentId":"A","taskId":"%s","result":{"text":%s}}}`,
		"with an id":              `{"id":"r","type":"agent.task.result","content":{"agentId":"A","taskId":"%s","result":%s}}`,
		"the task at the end":     `{"content":{"result":%[2]s,"taskId":"%[1]s"},"id":"r","type":"agent.task.result"}`,
		"the described form":      `{"id":"r","type":"task.result","requestId":"%s","content":{"result":%s,"status":"completed"}}`,
		"an error":                `{"type":"task.error","content":{"taskId":"%s","error":"no","details":%s}}`,
		"a child task's":          `{"type":"agent.response","taskId":"%s","content":{"data":%s}}`,
		"its task cannot be seen": `{"type":"agent.task.result","content":{"a":%[2]s,"taskId":"%[1]s","result":%[2]s}}`,
	} {
		task := unique()
		data := event.TaskAssignedData{TaskHead: event.TaskHead{TaskID: task, AgentID: agentID, Attempt: 1}, Data: json.RawMessage(`1`)}
		require.Equal(t, "+", s.deliver(p, taskLog("default", task), data))
		c.expectASP("task.execute")
		raw := fmt.Sprintf(frame, task, result)
		c.write(frameOf(raw))
		require.Equal(t, fmt.Sprintf("The result is too large: the agent sent %d bytes; the limit is 65536. Ask for less at a time.", len(raw)), s.failing(task).Error, name)
		c.unanswered()
	}
	s.until(wirecmd.ParticipantAgent, agentID, "no load", func(all []wirecmd.Participant) bool { return all[0].Load == 0 })
	task := unique()
	c.sendASP("agent.task.result", "", map[string]any{"taskId": task, "result": strings.Repeat("x", 60<<10)})
	cmd := s.nextCommand(task)
	require.Greater(t, len(cmd.Data), 60<<10, "what fits is taken")
}

func frameOf(raw string) []byte { return frame(fin|opText, []byte(raw)) }

// An oversized frame that does not end a task has no effect; a request gets a fault.
func TestOversizedFrames(t *testing.T) {
	t.Parallel()
	s := startSwarm(t, narrow)
	agent := s.agent(unique(), "A")
	for _, kind := range []string{"task.message", "task.status", "task.notification"} {
		agent.sendASP(kind, "waits for no answer", map[string]any{"taskId": "t", "message": large})
		agent.unanswered()
	}
	for _, kind := range []string{"task.requestmessage", "agent.request", "no.such.type"} {
		agent.sendASP(kind, "asked", map[string]any{"a": 1, "taskId": "t", "message": large})
		agent.expectError("asked", fault.MessageTooBig)
		agent.sendASP(kind, "", map[string]any{"taskId": "t", "message": large})
		agent.unanswered()
	}
	agent.write(frameOf(`{"type":"agent.task.result","content":{"result":"` + large + `"}}`))
	agent.unanswered() // of none of its tasks
	agent.write(frameOf(large))
	agent.unanswered()

	client, _ := s.join(pathClient, "")
	client.sendASP("client.agent.task.create.request", "create", map[string]any{"agentName": "A", "taskData": large})
	client.expectError("create", fault.MessageTooBig)
	client.sendASP("task.message", "", map[string]any{"taskId": "t", "message": large})
	client.unanswered()
	client.write(frameOf(large))
	client.expectError("", fault.MessageTooBig)

	late, _ := s.join(pathAgent, "")
	late.sendASP("agent.task.result", "r", map[string]any{"taskId": "t", "result": large})
	late.unanswered()
	late.sendASP("agent.register", "", map[string]any{"name": "A", "id": unique(), "manifest": large})
	late.closes(1008)
	agent.unanswered()
}

// A service's result that is larger than a frame may be fails its call.
func TestOversizedResultsOfServices(t *testing.T) {
	s := startSwarm(t, narrow)
	serviceID := unique()
	c := s.service(serviceID)
	p := s.onlyEntry(wirecmd.ParticipantService, serviceID)
	in := s.caller()
	for name, frame := range map[string]string{
		"as the SDK sends it":     `{"type":"service.task.result","content":{"serviceId":"s","taskId":"%s","result":{"text":"%s"}}}`,
		"the call at the end":     `{"content":{"result":"%[2]s","taskId":"%[1]s"},"type":"service.task.result"}`,
		"an error":                `{"type":"service.error","content":{"taskId":"%s","error":"%s"}}`,
		"its call cannot be seen": `{"type":"service.task.result","content":{"a":"%[2]s","taskId":"%[1]s","result":"%[2]s"}}`,
	} {
		callID := unique()
		require.Contains(t, s.deliver(p, taskLog("default", callID), in.request(callID)), "+")
		c.expectASP("service.task.execute")
		c.sendASP("service.task.notification", "", map[string]any{"taskId": callID, "notification": map[string]any{"message": large}})
		c.write(frameOf(fmt.Sprintf(frame, callID, large)))
		news := in.nextNews()
		require.True(t, news.Final, name)
		require.Equal(t, []string{callID, string(fault.MessageTooBig)}, []string{news.CallID, news.Code}, name)
		c.unanswered()
	}
	c.write(frameOf(`{"type":"service.error","content":{"error":"` + large + `"}}`))
	c.unanswered()
}

// The gateway cuts off a flood, also before registration.
func TestFloodsOfOneFrame(t *testing.T) {
	t.Parallel()
	s := startSwarm(t, narrow)
	c := s.agent(unique(), "A")
	c.write(frameOf(`{"type":"agent.task.result","content":{"result":"` + strings.Repeat("x", 16<<20) + `"}}`))
	c.closes(1009)
}
