package swarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

func dial(t testing.TB, opt swarm.ClientOptions) *swarm.Client {
	t.Helper()
	c, err := swarm.Dial(bounded(t), opt)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

func example(t testing.TB, name string) string {
	t.Helper()
	b, err := asp.Examples.ReadFile("examples/client/out/" + name + ".json")
	require.NoError(t, err)
	return string(b)
}

// A client that closes its connection gets no OnDisconnect with a loss.
func TestCloseLosesNoConnection(t *testing.T) {
	opt := serve(t, func(p *peer) {
		p.send(example(t, "orchestrator.client.welcome"))
		p.until()
	})
	var ends []error
	opt.OnDisconnect = func(err error) { ends = append(ends, err) }
	c, err := swarm.Dial(bounded(t), swarm.ClientOptions{Options: opt})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Equal(t, []error{nil}, ends)
}

// The examples of the description, each as the event that the description names.
func TestEveryEventOfTheDescription(t *testing.T) {
	frames := map[string]string{
		"client.agent.list.response": swarm.EventAgentList, "client.agent.task.create.response": swarm.EventTaskCreated,
		"client.agent.task.result": swarm.EventTaskResult, "client.agent.task.status.response": swarm.EventTaskStatus,
		"task.notification": swarm.EventTaskNotification, "task.error": swarm.EventTaskError, "task.requestmessage": swarm.EventTaskQuestion,
		"task.childtask.created": swarm.EventChildTaskCreated, "task.childtask.status": swarm.EventChildTaskStatus,
		"service.started": swarm.EventServiceStarted, "service.notification": swarm.EventServiceNotified,
		"service.completed": swarm.EventServiceCompleted, "client.mcp.server.list.response": swarm.EventMCPServerList,
		"mcp.task.execution": swarm.EventMCPExecution, "error": swarm.EventError,
	}
	opt := serve(t, func(p *peer) {
		p.send(example(t, "orchestrator.client.welcome"))
		for name := range frames {
			p.send(example(t, name))
		}
		p.until()
	})
	seen, rawSeen := map[string]swarm.Event{}, map[string]int{}
	all := make(chan struct{})
	c := dial(t, swarm.ClientOptions{Options: opt, OnEvent: func(e swarm.Event) {
		if e.Name == swarm.EventRawMessage {
			rawSeen[e.Message.Type]++
			return
		}
		if seen[e.Name] = e; len(seen) == len(frames)+2 {
			close(all)
		}
	}})
	<-all
	require.Equal(t, "client-001", c.ID())
	for name, event := range frames {
		require.Contains(t, seen, event)
		require.Equal(t, name, seen[event].Message.Type)
		require.Equal(t, 1, rawSeen[name])
	}
	require.Contains(t, seen, swarm.EventConnected)
	require.Equal(t, "1.0.0", seen[swarm.EventWelcome].Content.(swarm.Welcome).Version)
	require.Len(t, seen[swarm.EventAgentList].Content, 2)
	require.Equal(t, "filesystem-server", seen[swarm.EventMCPServerList].Content.([]swarm.ServerEntry)[0].ID)
	require.Equal(t, "input_request", seen[swarm.EventTaskQuestion].Content.(swarm.TaskQuestion).MessageType)
	require.True(t, swarm.IsCode(seen[swarm.EventError].Err, fault.AgentNotFound))
	require.Equal(t, int64(150), seen[swarm.EventMCPExecution].Content.(swarm.MCPExecution).ExecutionTime)
}

func TestRequestsAreThoseOfTheDescription(t *testing.T) {
	ctx := bounded(t)
	answer := func(kind, reply, content string, check func(in)) func(*peer) {
		return func(p *peer) {
			f := p.read(kind)
			check(f)
			p.say("task.notification", "", `{"taskId":"other","notificationType":"info","message":"x","level":"info","timestamp":""}`)
			p.say(reply, f.ID, content)
		}
	}
	is := func(want string) func(in) {
		return func(f in) { assert.JSONEq(t, want, string(f.Content)) }
	}
	steps := []func(*peer){
		answer("client.register", "client.register.response", `{"success":true,"clientId":"client-001","client":{}}`,
			is(`{"clientName":"Web","clientType":"web","version":"2","capabilities":["x"]}`)),
		answer("client.agent.list.request", "client.agent.list.response", `{"agents":[{"id":"agent-001","name":"Text","status":"online","state":"active","capabilities":[]}]}`,
			is(`{"filters":{"status":"active","capabilities":["text-processing"],"name":"Text"}}`)),
		answer("client.agent.task.status.request", "client.agent.task.status.response", `{"taskId":"t1","status":"running"}`, is(`{"taskId":"t1"}`)),
		answer("task.message", "task.message.sent", `{"taskId":"t1","status":"sent"}`, is(`{"taskId":"t1","message":{"targetLanguage":"spanish"}}`)),
		answer("client.agent.task.cancel.request", "client.agent.task.cancel.response", `{"taskId":"t1","status":"cancelled","message":""}`,
			is(`{"taskId":"t1","reason":"enough"}`)),
		answer("client.mcp.server.list.request", "client.mcp.server.list.response", `{"servers":[{"id":"fs"}]}`, is(`{"filters":{"type":"filesystem"}}`)),
		answer("mcp.server.tools", "mcp.server.tools", `{"serverId":"fs","tools":[{"id":"read_file","name":"read_file"}]}`, is(`{"serverId":"fs"}`)),
		answer("mcp.tool.execute", "mcp.task.execution", `{"serverId":"fs","toolName":"read_file","status":"success","result":{"size":1}}`,
			is(`{"serverId":"fs","toolName":"read_file","parameters":{"path":"/a"}}`)),
		answer("mcp.tool.execute", "mcp.task.execution", `{"serverId":"fs","toolName":"read_file","status":"error","error":"gone","code":"TOOL_FAILED"}`,
			is(`{"serverId":"fs","toolName":"read_file","parameters":{}}`)),
		answer("client.list", "client.list.response", `{"clients":[{"id":"client-002","name":"x","status":"active"}]}`,
			is(`{"filters":{"clientType":"web","status":"active"}}`)),
		answer("client.message", "message.sent", `{"targetClientId":"client-002","status":"sent"}`,
			is(`{"targetClientId":"client-002","messageType":"notification","data":{"title":"x"}}`)),
		answer("client.message", "error", `{"error":"There is no such client.","code":"CLIENT_NOT_FOUND","details":"content.targetClientId","field":"content.targetClientId"}`, func(in) {}),
	}
	opt := serve(t, func(p *peer) {
		assert.Equal(t, "Bearer key", p.req.Header.Get("Authorization"))
		assert.Equal(t, "/ws/asp/client", p.req.URL.Path)
		p.welcome()
		for _, step := range steps {
			step(p)
		}
		assert.Equal(t, websocket.StatusNormalClosure, p.until())
	})
	opt.Token = "key"
	c := dial(t, swarm.ClientOptions{Options: opt, Name: "Web", Type: "web", Version: "2", Capabilities: []string{"x"}})
	agents, err := c.Agents(ctx, swarm.Filter{Status: "active", Capabilities: []string{"text-processing"}, Name: "Text"})
	require.NoError(t, err)
	require.Equal(t, []string{"agent-001", swarm.StatusActive, "online"}, []string{agents[0].ID, agents[0].Status, agents[0].State})
	status, err := c.TaskStatus(ctx, "t1")
	require.NoError(t, err)
	require.Equal(t, swarm.TaskStatusRunning, status.Status)
	require.NoError(t, c.TaskMessage(ctx, "t1", map[string]any{"targetLanguage": "spanish"}))
	require.NoError(t, c.Cancel(ctx, "t1", "enough"))
	servers, err := c.MCPServers(ctx, swarm.Filter{Type: "filesystem"})
	require.NoError(t, err)
	require.Len(t, servers, 1)
	tools, err := c.MCPTools(ctx, "fs")
	require.NoError(t, err)
	require.Equal(t, "read_file", tools[0].Name)
	out, err := c.RunMCPTool(ctx, "fs", "read_file", map[string]any{"path": "/a"})
	require.NoError(t, err)
	require.JSONEq(t, `{"size":1}`, string(out.Result))
	_, err = c.RunMCPTool(ctx, "fs", "read_file", nil)
	require.True(t, swarm.IsCode(err, fault.ToolFailed))
	clients, err := c.Clients(ctx, swarm.Filter{Type: "web", Status: "active"})
	require.NoError(t, err)
	require.Len(t, clients, 1)
	require.NoError(t, c.MessageClient(ctx, "client-002", "notification", map[string]any{"title": "x"}))
	err = c.MessageClient(ctx, "nobody", "", nil)
	require.EqualError(t, err, "swarm: There is no such client. [CLIENT_NOT_FOUND, content.targetClientId]")
	var e *swarm.Error
	require.ErrorAs(t, err, &e)
	require.False(t, e.Retryable())
}

func create(p *peer, seq, task string) in {
	f := p.read("client.agent.task.create.request")
	p.send(`{"id":"e","seq":` + seq + `,"type":"client.agent.task.create.response","requestId":"` + f.ID + `","timestamp":"","content":{"taskId":"` + task + `","status":"created"}}`)
	return f
}

func TestATaskIsGivenAndItsEndAwaited(t *testing.T) {
	ctx := bounded(t)
	opt := serve(t, func(p *peer) {
		p.welcome()
		f := create(p, "1", "t1")
		assert.JSONEq(t, `{"agentId":"a","agentName":"Text","capabilities":["x"],"taskType":"up","taskData":{"text":"hello world"},"queueTimeout":1000,"timeout":2000}`, string(f.Content))
		p.told("2", "client.agent.task.result", `{"taskId":"t1","status":"completed","result":{"processedText":"HELLO WORLD"},"completedAt":""}`)
		create(p, "3", "t2")
		p.told("4", "client.agent.task.result", `{"taskId":"t2","status":"failed","error":"Expected string","code":"INVALID_INPUT","details":{"a":1},"completedAt":""}`)
		f = p.read("client.agent.task.create.request")
		p.say("error", f.ID, `{"error":"There is no such agent.","code":"AGENT_NOT_FOUND"}`)
		f = p.read("client.agent.task.create.request")
		p.send(`{"id":"e","seq":5,"type":"client.agent.task.result","requestId":"` + f.ID + `","content":{"taskId":"t3","status":"failed","error":"offline","code":"AGENT_OFFLINE"}}`)
		f = p.read("client.agent.task.status.request")
		p.say("client.agent.task.status.response", f.ID, `{"taskId":"old","status":"completed","result":7}`)
		p.until()
	})
	c := dial(t, swarm.ClientOptions{Options: opt})
	r, err := c.SendTask(ctx, swarm.NewTask{
		AgentID: "a", AgentName: "Text", Capabilities: []string{"x"}, Type: "up", Data: map[string]string{"text": "hello world"},
		QueueTimeout: time.Second, Timeout: 2 * time.Second,
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"processedText":"HELLO WORLD"}`, string(r.Result))
	r, err = c.SendTask(ctx, swarm.NewTask{AgentName: "Text", Data: 1})
	var e *swarm.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, swarm.Error{Code: "INVALID_INPUT", Message: "Expected string", Details: raw(`{"a":1}`), TaskID: "t2", Status: "failed"}, *e)
	require.Equal(t, "t2", r.TaskID)
	_, err = c.CreateTask(ctx, swarm.NewTask{AgentName: "Nobody", Data: 1})
	require.True(t, swarm.IsCode(err, fault.AgentNotFound))
	_, err = c.SendTask(ctx, swarm.NewTask{AgentName: "Away", Data: 1})
	require.True(t, swarm.IsCode(err, fault.AgentOffline), "%v", err)
	h, err := c.Attach(ctx, "old")
	require.NoError(t, err)
	r, err = h.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, "7", string(r.Result))
	_, err = c.CreateTask(ctx, swarm.NewTask{Data: func() {}})
	require.ErrorContains(t, err, "encode")
}

// A connection breaks at the worst moments: nothing is done twice, and nothing is lost.
func TestAClientComesBackAsItself(t *testing.T) {
	ctx := bounded(t)
	created := make(chan string, 1)
	failure := `{"id":"e3.task.error","type":"task.error","content":{"taskId":"t1","error":"x","code":"Y","status":"failed"}}`
	opt := serve(
		t,
		func(p *peer) {
			p.welcome()
			created <- p.read("client.agent.task.create.request").ID
			p.cut() // before it is answered
		},
		func(p *peer) { p.welcomeBack("0"); p.leave(websocket.StatusServiceRestart) },
		func(p *peer) {
			p.welcomeBack("0")
			p.told("1", "task.notification", `{"taskId":"t1","notificationType":"status","message":"waits","data":{"status":"queued"},"level":"info"}`)
			p.send(`{"id":"e2","seq":2,"type":"client.agent.task.create.response","requestId":"` + <-created + `","content":{"taskId":"t1","status":"created"}}`)
			p.send(failure)
			p.cut() // between the two frames of one event
		},
		func(p *peer) {
			p.welcomeBack("2")
			p.send(failure)
			p.told("3", "client.agent.task.result", `{"taskId":"t1","status":"failed","error":"x","code":"Y"}`)
			p.read("client.agent.list.request")
			p.cut()
		},
		func(p *peer) {
			p.welcomeBack("3")
			p.say("client.agent.list.response", p.read("client.agent.list.request").ID, `{"agents":[]}`) // it is asked again
			p.read("mcp.tool.execute")
			p.cut()
		},
		func(p *peer) { p.welcomeBack("3"); p.until() },
	)
	seen := make(chan string, 100)
	c := dial(t, swarm.ClientOptions{Options: opt, OnEvent: func(e swarm.Event) {
		switch e.Name {
		case swarm.EventTaskStatus:
			seen <- e.Name + " " + e.Content.(swarm.TaskStatus).Status
		case swarm.EventTaskCreated, swarm.EventTaskError, swarm.EventTaskResult:
			seen <- e.Name
		}
	}})
	_, err := c.SendTask(ctx, swarm.NewTask{AgentName: "Text", Data: 1})
	require.True(t, swarm.IsCode(err, "Y"), "%v", err)
	_, err = c.Agents(ctx, swarm.Filter{})
	require.NoError(t, err)
	_, err = c.RunMCPTool(ctx, "fs", "delete", nil)
	require.ErrorIs(t, err, swarm.ErrInterrupted)
	for _, want := range []string{"task.status queued", "task.created", "task.error", "task.result"} {
		require.Equal(t, want, <-seen)
	}
	require.Equal(t, swarm.Resume{ClientID: "client-001", Token: "secret", After: 3}, c.Resume())
	require.NoError(t, c.Close())
	require.Empty(t, seen)
	require.ErrorIs(t, c.Err(), swarm.ErrClosed)
	_, err = c.CreateTask(ctx, swarm.NewTask{Data: 1})
	require.ErrorIs(t, err, swarm.ErrClosed)
}

// A server that does not know the client any more, and gives it another id.
func TestWhoIsNotItselfAnyMoreStopsWaiting(t *testing.T) {
	opt := serve(
		t,
		func(p *peer) {
			p.say("orchestrator.client.welcome", "", `{"clientId":"one"}`)
			create(p, "1", "t1")
			p.cut()
		},
		func(p *peer) { p.say("orchestrator.client.welcome", "", `{"clientId":"two"}`); p.until() },
	)
	c := dial(t, swarm.ClientOptions{Options: opt})
	_, err := c.SendTask(bounded(t), swarm.NewTask{AgentName: "Text", Data: 1})
	require.ErrorIs(t, err, swarm.ErrInterrupted)
	require.Zero(t, c.Resume())
}

func TestRefusalsAreFinal(t *testing.T) {
	ctx := bounded(t)
	_, err := swarm.Dial(ctx, swarm.ClientOptions{Options: serve(t)})
	require.EqualError(t, err, "swarm: the server refused the connection (HTTP 403 Forbidden)")
	_, err = swarm.Dial(ctx, swarm.ClientOptions{Options: swarm.Options{URL: "ftp://x"}})
	require.ErrorContains(t, err, "is not a ws://")
	srv := httptest.NewServer(http.NotFoundHandler())
	url := "ws" + strings.TrimPrefix(srv.URL, "http")
	_, err = swarm.Dial(ctx, swarm.ClientOptions{Options: swarm.Options{URL: url + "/odd"}})
	require.ErrorContains(t, err, "check the path")
	srv.Close()
	_, err = swarm.Dial(ctx, swarm.ClientOptions{Options: swarm.Options{URL: url}, Resume: &swarm.Resume{ClientID: "c", Token: "secret"}})
	require.ErrorContains(t, err, "connect to "+url)
	require.NotContains(t, err.Error(), "secret")

	c := dial(t, swarm.ClientOptions{Options: serve(t, func(p *peer) {
		p.welcome()
		create(p, "1", "t1")
		p.leave(4403)
	})})
	h, err := c.CreateTask(ctx, swarm.NewTask{AgentName: "x", Data: 1})
	require.NoError(t, err)
	_, err = h.Wait(ctx)
	require.EqualError(t, err, "swarm: the server closed the connection: bye (4403)")
	<-c.Done()
	require.Error(t, c.Err())
	_, err = c.Agents(ctx, swarm.Filter{})
	require.Error(t, err)
}

func TestTokensAreRenewed(t *testing.T) {
	n := 0
	opt := serve(t,
		func(p *peer) { p.welcome(); p.read("client.agent.list.request"); p.leave(4401) },
		func(p *peer) {
			assert.Equal(t, "Bearer token-2", p.req.Header.Get("Authorization"))
			p.welcomeBack("0")
			p.say("client.agent.list.response", p.read("client.agent.list.request").ID, `{"agents":[]}`)
			p.leave(4403)
		})
	opt.TokenSource = func(context.Context) (string, error) { n++; return "token-" + strconv.Itoa(n), nil }
	c := dial(t, swarm.ClientOptions{Options: opt})
	_, err := c.Agents(bounded(t), swarm.Filter{})
	require.NoError(t, err)
	<-c.Done()
	require.ErrorContains(t, c.Err(), "4403")
	opt = serve(t)
	opt.TokenSource = func(context.Context) (string, error) { return "", errors.New("vault is sealed") }
	_, err = swarm.Dial(bounded(t), swarm.ClientOptions{Options: opt})
	require.ErrorContains(t, err, "vault is sealed")
}

// A handler that is far too slow gets all that is logged, in order, and the client can
// be used meanwhile, also by the handler.
func TestASlowHandlerMissesNothing(t *testing.T) {
	const last = 40
	script := func(p *peer) {
		after, _ := strconv.Atoi(p.req.URL.Query().Get("after"))
		if after == 0 {
			p.welcome()
		} else {
			p.welcomeBack(strconv.Itoa(after))
		}
		for i := after + 1; i <= last; i++ {
			p.told(strconv.Itoa(i), "task.notification", fmt.Sprintf(`{"taskId":"t%d","notificationType":"info","message":"x","level":"info","timestamp":""}`, i))
		}
		for {
			_, b, err := p.conn.Read(p.ctx)
			var f in
			if err != nil || json.Unmarshal(b, &f) != nil {
				return
			}
			p.say("client.agent.list.response", f.ID, `{"agents":[]}`)
		}
	}
	scripts := make([]func(*peer), 3*last)
	for i := range scripts {
		scripts[i] = script
	}
	var c *swarm.Client
	ready, all := make(chan struct{}), make(chan struct{})
	var got []string
	c = dial(t, swarm.ClientOptions{Options: serve(t, scripts...), Buffer: 3, OnEvent: func(e swarm.Event) {
		n, ok := e.Content.(swarm.TaskNotification)
		if !ok {
			return
		}
		<-ready
		if len(got)%10 == 0 {
			_, err := c.Agents(bounded(t), swarm.Filter{})
			assert.NoError(t, err)
		}
		if got = append(got, n.TaskID); len(got) == last {
			close(all)
		}
	}})
	close(ready)
	<-all
	for i, id := range got {
		require.Equal(t, "t"+strconv.Itoa(i+1), id)
	}
}

// TestListsHaveAllPages: a list is asked for until it has no next, and a server that repeats a place ends it.
func TestListsHaveAllPages(t *testing.T) {
	page := func(p *peer, want, answer string) {
		f := p.read("client.agent.list.request")
		assert.JSONEq(t, want, string(f.Content))
		p.say("client.agent.list.response", f.ID, answer)
	}
	opt := serve(t, func(p *peer) {
		p.welcome()
		page(p, `{"filters":{"name":"x"}}`, `{"agents":[{"id":"a"},{"id":"b"}],"next":"B"}`)
		page(p, `{"filters":{"name":"x"},"after":"B"}`, `{"agents":[{"id":"c"}],"next":"C"}`)
		page(p, `{"filters":{"name":"x"},"after":"C"}`, `{"agents":[],"next":"C"}`)
		page(p, `{"filters":{}}`, `{"agents":[{"id":"d"}]}`)
		assert.Equal(t, websocket.StatusNormalClosure, p.until())
	})
	c := dial(t, swarm.ClientOptions{Options: opt})
	for _, want := range []struct {
		filter swarm.Filter
		ids    []string
	}{{swarm.Filter{Name: "x"}, []string{"a", "b", "c"}}, {swarm.Filter{}, []string{"d"}}} {
		agents, err := c.Agents(bounded(t), want.filter)
		require.NoError(t, err)
		var ids []string
		for _, a := range agents {
			ids = append(ids, a.ID)
		}
		require.Equal(t, want.ids, ids)
	}
}
