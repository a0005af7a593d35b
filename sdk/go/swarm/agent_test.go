package swarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

// runner is an agent or a service.
type runner interface {
	Run(ctx context.Context) error
	Connected(ctx context.Context) error
}

// run runs it until the returned function is called, which returns what Run does.
func run(t testing.TB, r runner) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(bounded(t))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = func() error { cancel(); return <-ended }
	return stop
}

func agent(t testing.TB, opt swarm.Options, h swarm.TaskHandler) *swarm.Agent {
	t.Helper()
	a, err := swarm.NewAgent(swarm.AgentOptions{Options: opt, ID: "base-1", Name: "Base", Capabilities: []string{"x"}, Manifest: map[string]any{"v": 1}}, h)
	require.NoError(t, err)
	return a
}

// registered takes the agent in, which says which tasks it still has.
func (p *peer) registered(has ...string) {
	assert.Equal(p.t, "/ws/asp/agent", p.req.URL.Path)
	p.say("orchestrator.welcome", "", `{"version":"1"}`)
	f := p.read("agent.register")
	tasks, err := json.Marshal(append([]string{}, has...))
	assert.NoError(p.t, err)
	assert.JSONEq(p.t, `{"id":"base-1","agentId":"base-1","name":"Base","capabilities":["x"],"status":"active","manifest":{"v":1},"tasks":`+string(tasks)+`}`, string(f.Content))
	p.say("agent.registered", f.ID, `{"id":"base-1","agentId":"base-1"}`)
}

func (p *peer) execute(task string) { p.executeBy(task, `"timestamp":""`) }

// executeBy hands over a task with members of the metadata.
func (p *peer) executeBy(task, times string) {
	p.send(`{"id":"` + task + `","type":"task.execute","content":{"taskId":"` + task + `","type":"up","data":{"n":1},"input":{"n":1},"metadata":{"attempt":1,` + times + `}}}`)
}

// confirm lets the SDK know that the server has what came before.
func (p *peer) confirm() { p.say("pong", p.read("ping").ID, `{}`) }

// goodbye is how an agent ends.
func (p *peer) goodbye() {
	p.say("agent.unregistered", p.read("agent.unregister").ID, `{"id":"base-1"}`)
	p.until()
}

func TestAnAgentDoesATask(t *testing.T) {
	finished := make(chan struct{})
	opt := serve(t, func(p *peer) {
		p.registered()
		p.send(`{"id":"p","type":"ping","content":{}}`)
		p.read("pong")
		p.execute("t1")
		p.execute("t1") // again: it has it
		f := p.read("task.notification")
		assert.JSONEq(t, `{"taskId":"t1","agentId":"base-1","notificationType":"progress","message":"half","data":{"progress":50}}`, string(f.Content))
		p.say("task.message.received", f.ID, `{"taskId":"t1","status":"received"}`)
		f = p.read("task.requestmessage")
		assert.JSONEq(t, `{"taskId":"t1","agentId":"base-1","message":"which?","options":["a","b"],"timeout":30000}`, string(f.Content))
		p.say("task.messageresponse", "", `{"taskId":"t1","messageType":"client.message","message":"by the way","clientId":"c"}`)
		p.say("task.messageresponse", f.ID, `{"taskId":"t1","messageType":"input_response","message":"a","clientId":"c","inputId":"i"}`)
		f = p.read("service.task.execute")
		assert.JSONEq(t, `{"taskId":"t1","serviceId":"svc","toolId":"sum","params":{"a":1},"timeout":60000}`, string(f.Content))
		p.say("service.notification", "", `{"serviceId":"svc","taskId":"t1","notificationType":"progress","message":"adds"}`)
		p.say("service.task.execute.response", f.ID, `{"serviceId":"svc","toolId":"sum","status":"completed","result":3}`)
		f = p.read("mcp.tool.execute")
		assert.JSONEq(t, `{"taskId":"t1","serverId":"fs","toolName":"read","parameters":{},"timeout":60000}`, string(f.Content))
		p.say("mcp.tool.execute.result", f.ID, `{"serverId":"fs","toolName":"read","status":"error","error":"gone","code":"TOOL_FAILED"}`)
		f = p.read("agent.request")
		assert.JSONEq(t, `{"parentTaskId":"t1","targetAgent":"Other","taskData":{"q":1}}`, string(f.Content))
		p.say("childagent.request.accepted", "", `{"childTaskId":"t2","parentTaskId":"t1","status":"accepted","inReplyTo":"`+f.ID+`"}`)
		p.say("childagent.response", "", `{"childTaskId":"t2","parentTaskId":"t1","status":"completed","result":"done"}`)
		f = p.read("agent.task.result")
		assert.JSONEq(t, `{"taskId":"t1","agentId":"base-1","result":{"choice":"a","child":"done"}}`, string(f.Content))
		p.confirm()
		close(finished)
		p.goodbye()
	})
	a := agent(t, opt, func(ctx context.Context, task *swarm.Task) (any, error) {
		var in struct{ N int }
		assert.NoError(t, task.Decode(&in))
		assert.Equal(t, 1, in.N)
		assert.NoError(t, task.Progress(ctx, 0.5, "half"))
		answer, err := task.Ask(ctx, swarm.Question{Message: "which?", Options: []string{"a", "b"}})
		assert.NoError(t, err)
		assert.Equal(t, `"by the way"`, string((<-task.Messages()).Message))
		heard := make(chan swarm.ServiceNotification, 1)
		sum, err := task.CallService(ctx, "svc", "sum", map[string]int{"a": 1}, swarm.Call{OnNotify: func(n swarm.ServiceNotification) { heard <- n }})
		assert.NoError(t, err)
		assert.Equal(t, "3", string(sum))
		assert.Equal(t, "adds", (<-heard).Message)
		_, err = task.CallMCP(ctx, "fs", "read", nil, 0)
		assert.True(t, swarm.IsCode(err, fault.ToolFailed))
		child, err := task.Child(ctx, swarm.Child{AgentName: "Other", Data: map[string]int{"q": 1}})
		assert.NoError(t, err)
		return map[string]any{"choice": answer, "child": child}, nil
	})
	stop := run(t, a)
	<-finished
	require.NoError(t, stop())
}

func TestTasksThatEndOtherwise(t *testing.T) {
	finished := make(chan struct{})
	started := make(chan string, 10)
	opt := serve(t, func(p *peer) {
		p.registered()
		for _, c := range []struct{ task, want string }{
			{"fails", `{"taskId":"fails","agentId":"base-1","error":"no luck"}`},
			{"coded", `{"taskId":"coded","agentId":"base-1","error":"bad","code":"INVALID_INPUT","details":{"a":1}}`},
			{"panics", `{"taskId":"panics","agentId":"base-1","error":"the agent failed"}`},
			{"odd", `{"taskId":"odd","agentId":"base-1","error":"the result cannot be encoded: json: unsupported type: func()"}`},
		} {
			p.execute(c.task)
			assert.JSONEq(t, c.want, string(p.read("task.error").Content))
			p.confirm()
		}
		p.execute("waits")
		for s := range started {
			if s == "waits" {
				break
			}
		}
		p.send(`{"id":"c","type":"task.cancel","content":{"taskId":"waits","reason":"enough"}}`)
		assert.Equal(t, "waits cancelled", <-started)
		p.execute("stays")
		assert.Equal(t, "stays", <-started)
		close(finished)
		p.goodbye()
	})
	a := agent(t, opt, func(ctx context.Context, task *swarm.Task) (any, error) {
		started <- task.ID
		switch task.ID {
		case "fails":
			return nil, errors.New("no luck")
		case "coded":
			return nil, &swarm.Error{Code: "INVALID_INPUT", Message: "bad", Details: raw(`{"a":1}`)}
		case "panics":
			panic("oh")
		case "odd":
			return func() {}, nil
		}
		<-ctx.Done()
		if task.ID == "waits" {
			assert.ErrorIs(t, context.Cause(ctx), swarm.ErrCancelled)
			started <- "waits cancelled"
			return "too late", nil
		}
		return nil, ctx.Err()
	})
	stop := run(t, a)
	<-finished
	require.NoError(t, stop())
}

// An agent keeps its task over connections, and tells its end until the server has it.
func TestAnAgentComesBackWithItsTask(t *testing.T) {
	finished, goOn := make(chan struct{}), make(chan struct{})
	opt := serve(
		t,
		func(p *peer) { p.registered(); p.execute("t1"); p.read("task.requestmessage"); p.cut() },
		func(p *peer) {
			p.registered("t1")
			f := p.read("task.requestmessage")
			p.say("error", f.ID, `{"error":"Another question of this task is open.","code":"QUEUE_FULL"}`)
			p.say("task.messageresponse", f.ID, `{"taskId":"t1","message":"yes"}`)
			p.read("task.notification")
			p.cut()
		},
		func(p *peer) {
			p.registered("t1")
			p.say("task.message.received", p.read("task.notification").ID, `{}`)
			p.read("agent.task.result")
			p.cut() // does it have it?
		},
		func(p *peer) {
			p.registered("t1")
			f := p.read("agent.task.result")
			p.say("error", f.ID, `{"error":"The task is over.","code":"TASK_FINISHED"}`)
			p.confirm()
			close(finished)
			<-goOn
			p.goodbye()
		},
	)
	var failures []error
	a, err := swarm.NewAgent(swarm.AgentOptions{
		Options: opt, ID: "base-1", Name: "Base", Capabilities: []string{"x"}, Manifest: map[string]any{"v": 1},
		OnError: func(err error) { failures = append(failures, err) },
	}, func(ctx context.Context, task *swarm.Task) (any, error) {
		answer, err := task.Ask(ctx, swarm.Question{Message: "sure?"})
		if err != nil {
			return nil, err
		}
		return answer, task.Notify(ctx, swarm.Notification{Message: "soon"})
	})
	require.NoError(t, err)
	stop := run(t, a)
	<-finished
	close(goOn)
	require.NoError(t, stop())
	require.Empty(t, failures)
}

func TestAnAgentAsksAround(t *testing.T) {
	ctx := bounded(t)
	opt := serve(t, func(p *peer) {
		p.registered()
		for _, c := range [][3]string{
			{"agent.agent.list.request", "agent.agent.list.response", `{"agents":[{"id":"a"}]}`},
			{"agent.service.list.request", "agent.service.list.response", `{"services":[{"id":"s"}]}`},
			{"service.tools.list", "service.tools.list.response", `{"tools":[{"id":"t"}]}`},
			{"agent.mcp.servers.list", "agent.mcp.servers.list.result", `{"servers":[{"id":"m"}]}`},
			{"mcp.tools.list", "mcp.tools.list.result", `{"tools":[{"id":"t"}]}`},
			{"agent.status", "agent.status.updated", `{"id":"base-1","status":"busy"}`},
		} {
			p.say(c[1], p.read(c[0]).ID, c[2])
		}
		p.goodbye()
	})
	a := agent(t, opt, func(context.Context, *swarm.Task) (any, error) { return nil, nil })
	stop := run(t, a)
	require.NoError(t, a.Connected(ctx))
	agents, err := a.Agents(ctx, swarm.Filter{})
	require.NoError(t, err)
	require.Len(t, agents, 1)
	services, err := a.Services(ctx, swarm.Filter{})
	require.NoError(t, err)
	require.Len(t, services, 1)
	tools, err := a.ServiceTools(ctx, "s")
	require.NoError(t, err)
	require.Len(t, tools, 1)
	servers, err := a.MCPServers(ctx, swarm.Filter{})
	require.NoError(t, err)
	require.Len(t, servers, 1)
	tools, err = a.MCPTools(ctx, "m")
	require.NoError(t, err)
	require.Len(t, tools, 1)
	require.NoError(t, a.SetStatus(ctx, swarm.StatusBusy))
	require.NoError(t, stop())
}

func TestAnAgentThatIsNotTakenEnds(t *testing.T) {
	opt := serve(t, func(p *peer) {
		p.say("error", p.read("agent.register").ID, `{"error":"content.name is too long.","code":"INVALID_FIELD"}`)
		p.until()
	})
	a := agent(t, opt, func(context.Context, *swarm.Task) (any, error) { return nil, nil })
	err := a.Run(bounded(t))
	require.ErrorContains(t, err, "does not take the registration")
	require.True(t, swarm.IsCode(err, fault.InvalidField))
	_, err = swarm.NewAgent(swarm.AgentOptions{}, nil)
	require.ErrorContains(t, err, "needs a name")
	_, err = swarm.NewAgent(swarm.AgentOptions{Name: "x"}, nil)
	require.ErrorContains(t, err, "needs a handler")
}
