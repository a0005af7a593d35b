package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/payload"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// big returns a text of about n bytes with what JSON escapes.
func big(n int) string { return strings.Repeat("x", n) + "a<b>&\"\n\u2028" }

// sizes are those of the data that participants send, in bytes of JSON.
var sizes = []int{300 << 10, 900 << 10}

// put stores a text as an object of the log.
func (s *swarm) put(l subject.Log, text string) *event.ObjectRef {
	s.t.Helper()
	raw, err := json.Marshal(text)
	require.NoError(s.t, err)
	ref, err := payload.New(s.conn).Put(context.Background(), l, raw)
	require.NoError(s.t, err)
	return ref
}

// stored returns how many messages the stream of objects holds of a log.
func (s *swarm) stored(l subject.Log) (n int) {
	s.t.Helper()
	objects, err := s.conn.JS().ObjectStore(context.Background(), subject.BucketPayloads)
	require.NoError(s.t, err)
	all, err := objects.List(context.Background())
	require.NoError(s.t, err)
	for _, info := range all {
		if of, _, err := subject.ParsePayloadName(info.Name); err == nil && of == l {
			n++
		}
	}
	return n
}

// filled returns the data of a command with what it refers to.
func filled[T any, P interface {
	*T
	event.Large
}](s *swarm, c wirecmd.Command) T {
	s.t.Helper()
	require.Less(s.t, len(c.Data), 250<<10, "a command does not hold it")
	var d T
	require.NoError(s.t, c.Decode(&d))
	require.NoError(s.t, payload.New(s.conn).Fill(context.Background(), c.Tenant, P(&d)))
	return d
}

func unquote(t testing.TB, raw json.RawMessage) (text string) {
	t.Helper()
	require.NoError(t, json.Unmarshal(raw, &text))
	return text
}

// A result that does not fit into an event is stored once, however often the agent repeats it,
// and the socket continues. The same holds for a child task and a call.
func TestLargeResultsAreStored(t *testing.T) {
	t.Parallel()
	s := startSwarm(t)
	c := s.agent(unique(), "A")
	for _, size := range sizes {
		task := unique()
		for range 2 {
			c.sendASP("agent.task.result", "r", map[string]any{"taskId": task, "result": big(size)})
			r := filled[wirecmd.TaskResult](s, s.nextCommand(task))
			require.False(t, r.Failed, "%s", r.Error)
			require.Equal(t, big(size), unquote(t, r.Result))
		}
		require.Equal(t, 1, s.stored(taskLog("default", task)))

		c.sendASP("task.notification", "n", map[string]any{"taskId": task, "message": "look", "data": big(size)})
		c.expectASP("task.message.received")
		require.Equal(t, big(size), unquote(t, filled[wirecmd.TaskNotification](s, s.nextCommand(task)).Data))
		require.Equal(t, 1, s.stored(taskLog("default", task)), "it is the same text")

		c.sendASP("agent.request", "k"+task, map[string]any{"taskId": task, "targetAgent": "B", "taskData": big(size)})
		child := filled[wirecmd.SpawnChild](s, s.nextCommand(task))
		require.Equal(t, big(size), unquote(t, child.Data))
		require.Equal(t, 1, s.stored(taskLog("default", child.ChildID)), "it is the child's")

		c.sendASP("service.task.execute", "x", map[string]any{"taskId": task, "serviceId": "v", "toolId": "f", "params": map[string]any{"text": big(size)}})
		call := filled[wirecmd.ToolRequest](s, s.nextCommand(task))
		var args struct{ Text string }
		require.NoError(t, json.Unmarshal(call.Arguments, &args))
		require.Equal(t, big(size), args.Text)
	}
	task, signs := unique(), strings.Repeat("<", 100<<10) // short, and long where it is escaped
	c.write(text(`{"type":"agent.task.result","content":{"taskId":"` + task + `","result":"` + signs + `"}}`))
	require.Equal(t, signs, unquote(t, filled[wirecmd.TaskResult](s, s.nextCommand(task)).Result))
	c.unanswered()
}

// A task that is requested twice is stored once, and its status is answered whole. A message of
// its client to its agent is stored as well.
func TestLargeTasksAreAskedFor(t *testing.T) {
	t.Parallel()
	s := startSwarm(t)
	c, _ := s.join(pathClient, "")
	for _, size := range sizes {
		task := ""
		for range 2 {
			c.sendASP("client.agent.task.create.request", fmt.Sprint("f", size), map[string]any{"agentName": "A", "taskData": big(size)})
			c.sendASP("client.list", "l", map[string]any{}) // it is answered after
			c.expectASP("client.list.response")
			asked := s.tasks.last()
			require.Less(t, len(asked.Data), 1000)
			var n wirecmd.NewTask
			require.NoError(t, json.Unmarshal(asked.Data, &n))
			require.NoError(t, payload.New(s.conn).Fill(context.Background(), asked.Tenant, &n))
			require.Equal(t, big(size), unquote(t, n.Data))
			task = n.TaskID
		}
		require.Equal(t, 1, s.stored(taskLog("default", task)))

		c.sendASP("task.message", "m"+task, map[string]any{"taskId": task, "message": big(size)})
		require.Equal(t, big(size), unquote(t, filled[wirecmd.TaskMessage](s, s.nextCommand(task)).Message))

		view := wirecmd.TaskView{TaskHead: event.TaskHead{TaskID: task}, Status: "completed", CreatedAt: time.Now(), EndedAt: time.Now(), Before: true}
		view.ResultRef = s.put(taskLog("default", task), big(size))
		s.tasks.mu.Lock()
		s.tasks.task = view
		s.tasks.mu.Unlock()
		c.sendASP("client.agent.task.status.request", "s", map[string]any{"taskId": task})
		require.Equal(t, big(size), unquote(t, c.expectASP("client.agent.task.status.response").Content.Result))
		c.sendASP("client.agent.task.create.request", fmt.Sprint("f", size), map[string]any{"agentName": "A", "taskData": big(size)})
		c.expectASP("client.agent.task.create.response")
		require.Equal(t, big(size), unquote(t, c.expectASP("client.agent.task.result").Content.Result), "the end that it has had")
		s.tasks.mu.Lock()
		s.tasks.task = wirecmd.TaskView{}
		s.tasks.mu.Unlock()
	}
}

// A task whose data is stored is handed to its agent whole, and what the agent is told
// afterwards comes after it.
func TestLargeTasksAreHandedOver(t *testing.T) {
	t.Parallel()
	s := startSwarm(t)
	agentID := unique()
	c := s.agent(agentID, "Worker")
	p := s.onlyEntry(wirecmd.ParticipantAgent, agentID)
	for i, size := range append([]int{10}, sizes...) {
		task := fmt.Sprintf("%s-%d", agentID, i)
		about := taskLog("default", task)
		head := event.TaskHead{TaskID: task, AgentID: agentID, Attempt: 1}
		require.Equal(t, "+", s.deliver(p, about, event.TaskAssignedData{TaskHead: head, DataRef: s.put(about, big(size))}))
		require.Equal(t, "+", s.deliver(p, about, event.TaskMessagedData{TaskHead: head, MessageID: "m", Message: json.RawMessage(`"small"`)}))
		require.Equal(t, "+", s.deliver(p, about, event.ChildFinishedData{TaskHead: head, ChildID: "k", Status: "completed", ResultRef: s.put(about, big(size))}))
		require.Equal(t, "+", s.deliver(p, about, event.TaskReleasedData{TaskHead: head, Reason: "x"}))
		require.Equal(t, big(size), unquote(t, c.expectASP("task.execute").Content.Data))
		c.expectASP("task.messageresponse")
		require.Equal(t, big(size), unquote(t, c.expectASP("childagent.response").Content.Result))
		c.expectASP("task.cancel")
	}
	s.until(wirecmd.ParticipantAgent, agentID, "no load", func(all []wirecmd.Participant) bool { return len(all) == 1 && all[0].Load == 0 })
}

// ends appends the end of a task to a client's log, with its result in an object of the
// task.
func (s *swarm) ends(inbox subject.Log, task, result string, ref *event.ObjectRef) {
	s.t.Helper()
	require.NoError(s.t, s.append(inbox, unique(), event.TaskFinishedData{
		TaskHead: event.TaskHead{TaskID: task, RequestID: "req-" + task}, Status: event.TaskEndCompleted,
		Result: json.RawMessage(result), ResultRef: ref, CreatedAt: time.Now(),
	}))
}

// A client is shown results that are stored whole and in their place among the others,
// live and when it comes back.
func TestLargeResultsAreShown(t *testing.T) {
	t.Parallel()
	s := startSwarm(t)
	c, hello := s.join(pathClient, "")
	l := clientLog("default", hello.Content.ClientID)
	want := map[string]int{}
	for i, size := range append(sizes, sizes...) {
		s.writeInbox(l, "before")
		task := unique()
		want[task] = size
		s.ends(l, task, "null", s.put(taskLog("default", task), big(size)))
		s.writeInbox(l, "after")
		require.Equal(t, uint64(3*i+2), c.expectASP("client.message").Seq)
		h := c.expectASP("client.agent.task.result")
		require.Equal(t, []any{task, uint64(3*i + 3), "req-" + task, "completed"}, []any{h.Content.TaskID, h.Seq, h.RequestID, h.Content.Status})
		require.Equal(t, big(size), unquote(t, h.Content.Result))
		for range 2 { // the message, and the result once more for the SDK, in any order
			b, err := c.text()
			require.NoError(t, err)
			var again aspFrame
			require.NoError(t, json.Unmarshal(b, &again))
			if again.Type == "client.message" {
				require.Equal(t, uint64(3*i+4), again.Seq)
				continue
			}
			require.Equal(t, []string{"client.agent.task.result", h.ID, ""}, []string{again.Type, again.ID, again.RequestID})
			require.Equal(t, big(size), unquote(t, again.Content.Result))
		}
	}
	c.cut()
	back, _ := s.join(pathClient, "clientId="+hello.Content.ClientID+"&resumeToken="+hello.Content.ResumeToken+"&after=2")
	for seq := uint64(3); seq <= uint64(3*len(want)+1); {
		b, err := back.text()
		require.NoError(t, err)
		var h aspFrame
		require.NoError(t, json.Unmarshal(b, &h))
		if h.Seq == 0 {
			continue // once more for the SDK
		}
		require.Equal(t, seq, h.Seq)
		seq++
		if h.Type == "client.agent.task.result" {
			require.Equal(t, big(want[h.Content.TaskID]), unquote(t, h.Content.Result))
		}
	}
}

// A repeated result comes after its original, also to a client that has not read for a while.
func TestARepeatComesAfterItsOriginal(t *testing.T) {
	t.Parallel()
	s := startSwarm(t)
	c, hello := s.join(pathClient, "")
	l := clientLog("default", hello.Content.ClientID)
	const results = 12
	for range results {
		task := unique()
		s.ends(l, task, "null", s.put(taskLog("default", task), big(900<<10)))
	}
	for first, again := map[string]bool{}, 0; again < results; {
		b, err := c.text()
		require.NoError(t, err)
		var h aspFrame
		require.NoError(t, json.Unmarshal(b, &h))
		if h.Type != "client.agent.task.result" {
			continue
		}
		if h.Seq > 0 {
			first[h.Content.TaskID] = true
			continue
		}
		require.True(t, first[h.Content.TaskID], "%s after %d results", h.Content.TaskID, len(first))
		again++
	}
}

// Lost data is reported and affects nothing else: a client gets a fault in place of the result,
// and a task whose data is lost fails.
func TestLostDataIsReported(t *testing.T) {
	s := startSwarm(t)
	c, hello := s.join(pathClient, "")
	l := clientLog("default", hello.Content.ClientID)
	agentID, task := unique(), unique()
	a := s.agent(agentID, "Worker")
	about := taskLog("default", task)
	foreign := s.put(taskLog("foreign", task), big(300<<10)) // of another tenant, under the same name
	s.ends(l, task, "null", foreign)
	s.writeInbox(l, "after")
	require.Equal(t, "PAYLOAD_LOST", c.expectASP("task.error").Content.Code)
	h := c.expectASP("client.agent.task.result")
	require.Equal(t, []string{"failed", "PAYLOAD_LOST", "req-" + task}, []string{h.Content.Status, h.Content.Code, h.RequestID})
	require.Equal(t, fault.Lookup(fault.PayloadLost).Message, h.Content.Error)
	require.Equal(t, []string{"after"}, c.expectMessages(3, 3))

	p := s.onlyEntry(wirecmd.ParticipantAgent, agentID)
	head := event.TaskHead{TaskID: task, AgentID: agentID, Attempt: 2}
	require.Equal(t, "+", s.deliver(p, about, event.TaskAssignedData{TaskHead: head, DataRef: foreign}))
	var r wirecmd.TaskResult
	require.NoError(t, s.nextCommand(task).Decode(&r))
	require.Equal(t, wirecmd.TaskResult{TaskID: task, AgentID: agentID, Failed: true, Code: "PAYLOAD_LOST", Error: fault.Lookup(fault.PayloadLost).Message}, r)
	a.unanswered()
	s.until(wirecmd.ParticipantAgent, agentID, "no load", func(all []wirecmd.Participant) bool { return len(all) == 1 && all[0].Load == 0 })
}

// A client that does not read keeps at most one result in memory besides its queue, and
// another one is shown its own meanwhile. When it reads it gets all.
func TestAClientThatDoesNotReadLargeResults(t *testing.T) {
	t.Parallel()
	const results = 12
	s := startSwarm(t)
	slow, hello := s.join(pathClient, "")
	ref := map[string]*event.ObjectRef{}
	task := unique()
	ref[task] = s.put(taskLog("default", task), big(900<<10))
	for range results {
		s.ends(clientLog("default", hello.Content.ClientID), task, "null", ref[task])
	}
	for range 3 {
		quick, hi := s.join(pathClient, "")
		s.ends(clientLog("default", hi.Content.ClientID), task, "null", ref[task])
		require.Equal(t, big(900<<10), unquote(t, quick.expectASP("client.agent.task.result").Content.Result))
		quick.leave()
	}
	for seq := uint64(2); seq < results+2; {
		b, err := slow.text()
		require.NoError(t, err)
		var h aspFrame
		require.NoError(t, json.Unmarshal(b, &h))
		if h.Seq == 0 {
			continue
		}
		require.Equal(t, seq, h.Seq)
		require.Equal(t, big(900<<10), unquote(t, h.Content.Result))
		seq++
	}
}

// A store that is full ends no socket: a result fails its task with the reason, a request
// is refused, and smaller ones still work.
func TestAFullStoreFailsTheTask(t *testing.T) {
	t.Parallel()
	top := bus.DefaultTopology()
	top.ObjectMaxBytes = 400 << 10
	s := &swarm{rig: prepare(t, bustest.Dial(t, bustest.Start(t, top).URL))}
	s.dir = openDirectory(t, s.rig)
	s.srv = s.server(withSwarm(s.dir), unlimited)
	s.serve()
	c := s.agent(unique(), "A")
	task := unique()
	for _, size := range []int{300 << 10, 900 << 10, 10} {
		c.sendASP("agent.task.result", "", map[string]any{"taskId": task, "result": strings.Repeat("x", size)})
		var r wirecmd.TaskResult
		require.NoError(t, s.nextCommand(task).Decode(&r))
		require.Equal(t, size == 900<<10, r.Failed, size)
		if r.Failed {
			require.Equal(t, string(fault.MessageTooBig), r.Code)
			require.Contains(t, r.Error, "the store is full")
		}
	}
	c.sendASP("agent.request", "k", map[string]any{"taskId": task, "targetAgent": "B", "taskData": big(900 << 10)})
	c.expectError("k", fault.MessageTooBig)
	c.unanswered()
}

// Events for an agent that does not read wait after a large one, bounded in number and in
// bytes. The gateway refuses more, and the notifier tries again later.
func TestWaitingEventsOfAnAgentAreBounded(t *testing.T) {
	t.Parallel()
	s := startSwarm(t)
	agentID, task := unique(), unique()
	s.agent(agentID, "Worker")
	p := s.onlyEntry(wirecmd.ParticipantAgent, agentID)
	about := taskLog("default", task)
	head := event.TaskHead{TaskID: task, AgentID: agentID, Attempt: 1}
	ref := s.put(about, big(900<<10))
	for range 8 { // more than socket and queue hold
		require.Equal(t, "+", s.deliver(p, about, event.TaskAssignedData{TaskHead: head, DataRef: ref}))
	}
	taken := 0
	for message, err := json.Marshal(big(100 << 10)); s.deliver(p, about, event.TaskMessagedData{TaskHead: head, MessageID: "m", Message: message}) == "+"; taken++ {
		require.NoError(t, err)
		require.Less(t, taken, 20, "more than a queue's worth waits")
	}
	require.Positive(t, taken)
}
