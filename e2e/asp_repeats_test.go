package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// request is a frame that comes again, and what answers it.
type request struct {
	id, kind string
	content  object
	answer   string // type of the answer; it has the id of the request where the protocol says so
}

// says sends the request so many times, one right after the other.
func (r request) says(b *client.Swarm, times int) {
	for range times {
		_ = b.Send(object{"id": r.id, "type": r.kind, "content": r.content}) // a lost connection is seen by who waits
	}
}

// answers reports whether a frame answers the request.
func (r request) answers(f client.SwarmFrame) bool {
	return f.Type == r.answer && (f.RequestID == r.id || f.Text("inReplyTo") == r.id)
}

// tally returns how many frames pass.
func tally(b *client.Swarm, is func(client.SwarmFrame) bool) (n int) {
	for _, f := range b.Frames() {
		if is(f) {
			n++
		}
	}
	return n
}

func ofType(kind string) func(client.SwarmFrame) bool {
	return func(f client.SwarmFrame) bool { return f.Type == kind }
}

// repeats are the participants of a swarm of which each asks for everything twice: at once,
// and again at another gateway after its own was killed.
type repeats struct {
	*testing.T
	client, worker, helper *client.Swarm
	task                   string
	bought                 atomic.Int64
	requests               map[string]request
	first                  map[string]client.SwarmFrame // answers
}

// TestRequestsOfASwarmThatComeAgain: each has one effect and the same answer, also at
// another gateway.
func TestRequestsOfASwarmThatComeAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, scripted.Smart())
	f.serve("session,pipeline,task,tools")
	doomed, one := f.gateway()
	_, two := f.gateway()
	r := &repeats{T: t, requests: map[string]request{}, first: map[string]client.SwarmFrame{}}
	here, there := swarmRig{t: t, addr: one}, swarmRig{t: t, addr: two}
	there.service("shop", "Shop", r.sell, object{"id": "buy"})
	r.helper = there.agent("helper", "Helper", nil)
	r.worker = here.agent("worker", "Worker", nil)
	r.client = here.client()
	hello := r.client.Find("the welcome", ofType("orchestrator.client.welcome"))

	r.outside(2)
	r.create()
	r.within()
	r.talk()
	doomed.Kill()
	<-r.worker.Ended()

	r.worker = there.agent("worker", "Worker", nil)
	r.client = client.DialSwarm(t, client.SwarmOptions{
		Role: proof.RoleClient, Addr: two, Query: "clientId=" + hello.Text("clientId") + "&resumeToken=" + hello.Text("resumeToken"),
	})
	r.client.Find("the welcome", ofType("orchestrator.client.welcome"))
	r.outside(1)
	for _, name := range []string{"call", "child", "message", "create"} {
		r.again(name)
	}
	r.ends()
	require.EqualValues(t, 2, r.bought.Load(), "one purchase outside of the task, one within")
	require.Equal(t, 1, tally(r.helper, ofType("task.execute")))
}

// sell is the service: each call is a purchase.
func (r *repeats) sell(s *client.Swarm, f client.SwarmFrame) {
	if f.Type == "service.task.execute" {
		_, err := s.Tell("service.task.result", object{"taskId": f.ID, "result": object{"number": r.bought.Add(1)}})
		assert.NoError(r, err)
	}
}

// asks sends a request several times and keeps its first answer.
func (r *repeats) asks(b *client.Swarm, name string, times int, q request) {
	r.Helper()
	r.requests[name] = q
	q.says(b, times)
	got := b.Find("the answer to "+name, q.answers)
	if before, known := r.first[name]; known {
		require.Equal(r, string(before.Content), string(got.Content), name)
		return
	}
	r.first[name] = got
}

// again repeats a request of the first gateway at the second one.
func (r *repeats) again(name string) {
	r.Helper()
	b := r.worker
	if name == "message" || name == "create" {
		b = r.client
	}
	r.asks(b, name, 1, r.requests[name])
}

// outside asks for a tool outside of any task.
func (r *repeats) outside(times int) {
	r.Helper()
	q := request{"O", "service.task.execute", object{"serviceId": "shop", "toolId": "buy"}, "service.task.execute.response"}
	r.asks(r.worker, "outside", times, q)
	process.Eventually(r.T, "each is answered", func() bool { return tally(r.worker, q.answers) == times })
	for _, f := range r.worker.Frames() {
		if q.answers(f) {
			require.Equal(r, string(r.first["outside"].Content), string(f.Content))
		}
	}
}

func (r *repeats) create() {
	r.Helper()
	r.asks(r.client, "create", 2, request{"C", "client.agent.task.create.request", object{"agentName": "Worker", "taskData": 1}, "client.agent.task.create.response"})
	r.task = r.worker.Find("the task", ofType("task.execute")).Text("taskId")
	require.Equal(r, r.task, r.first["create"].Text("taskId"))
}

// within asks for everything that an agent may ask for within a task.
func (r *repeats) within() {
	r.Helper()
	r.asks(r.worker, "call", 2, request{"S", "service.task.execute", object{"serviceId": "shop", "toolId": "buy", "taskId": r.task}, "service.task.execute.response"})
	r.asks(r.worker, "child", 2, request{"K", "agent.request", object{"targetAgent": "Helper", "taskData": 2, "parentTaskId": r.task}, "childagent.request.accepted"})
	child := r.helper.Find("the child", ofType("task.execute")).Text("taskId")
	request{"R", "agent.task.result", object{"taskId": child, "result": 3}, ""}.says(r.helper, 2)
	r.worker.Find("the child's end", ofType("childagent.response"))
	note := request{"N", "task.notification", object{"taskId": r.task, "message": "half"}, "task.message.received"}
	r.asks(r.worker, "note", 2, note)
	r.client.Find("the note", func(f client.SwarmFrame) bool { return f.Text("message") == "half" })
}

// talk asks the client a question, which it answers.
func (r *repeats) talk() {
	r.Helper()
	q := request{"Q", "task.requestmessage", object{"taskId": r.task, "message": "Which?"}, "task.messageresponse"}
	q.says(r.worker, 2)
	r.client.Find("the question", ofType("task.requestmessage"))
	r.asks(r.client, "message", 2, request{"M", "task.message", object{"taskId": r.task, "message": "that one"}, "task.message.sent"})
	r.worker.Find("the answer", q.answers)
	q.says(r.worker, 1)
	process.Eventually(r.T, "the answer comes again", func() bool { return tally(r.worker, q.answers) == 2 })
	require.Equal(r, 1, tally(r.client, ofType("task.requestmessage")))
	require.Equal(r, 1, tally(r.client, func(f client.SwarmFrame) bool { return f.Text("message") == "half" }))
}

// ends gives the task its end, twice, and cancels another one twice.
func (r *repeats) ends() {
	r.Helper()
	request{"E", "agent.task.result", object{"taskId": r.task, "result": 4}, ""}.says(r.worker, 2)
	create := r.requests["create"]
	create.answer = "client.agent.task.result"
	r.client.Find("the end", create.answers)
	r.requests["create"] = create
	delete(r.first, "create")
	r.again("create")
	require.JSONEq(r, "4", string(r.first["create"].Member("result")))

	other := request{"C2", "client.agent.task.create.request", object{"agentName": "Worker", "taskData": 1}, "client.agent.task.create.response"}
	r.asks(r.client, "other", 1, other)
	stop := request{"X", "client.agent.task.cancel.request", object{"taskId": r.first["other"].Text("taskId")}, "client.agent.task.cancel.response"}
	r.asks(r.client, "cancel", 2, stop)
	process.Eventually(r.T, "both are confirmed", func() bool { return tally(r.client, stop.answers) == 2 })
	require.Empty(r, append(r.client.Errors(), r.worker.Errors()...))
}

// TestEveryRequestOfASwarmSaysWhatARepeatGets: the table of the documentation names each
// message of each role, and tests that exist.
func TestEveryRequestOfASwarmSaysWhatARepeatGets(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/PROTOCOL-ASP.md")
	require.NoError(t, err)
	section := regexp.MustCompile(`(?s)### Requests that come again\n(.*?)\n###? `).FindSubmatch(append(page, "\n## "...))
	require.NotNil(t, section)
	rows := map[string]string{} // role: messages
	var named []string
	for _, m := range regexp.MustCompile(`(?m)^\| (client|agent|service) \| ([^|]*) \| [^|]* \| [^|]* \| ([^|]*) \|$`).FindAllStringSubmatch(string(section[1]), -1) {
		rows[m[1]] += m[2]
		for _, n := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(m[3], -1) {
			named = append(named, n[1])
		}
	}
	for _, m := range proof.SwarmMessages() {
		if !m.To {
			require.Contains(t, rows[m.Role], "`"+m.Type+"`", "%s", m)
		}
	}
	require.NotEmpty(t, named)
	all := ""
	for _, pattern := range []string{"*_test.go", "../gateway/*_test.go", "../gateway/asp/*_test.go", "../services/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range files {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			all += string(text)
		}
	}
	for _, n := range named {
		require.Contains(t, all, "func "+n+"(", n)
	}
}
