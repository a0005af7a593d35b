package swarm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/sdk/go/link"
)

// agentPath is where agents connect.
const agentPath = "/ws/asp/agent"

const (
	// DefaultConcurrency is how many tasks or calls run at once unless the options say
	// another number: enough for work that waits for models and tools.
	DefaultConcurrency = 16
	// maxHeld bounds the tasks or calls that one agent or service holds, running or not.
	// The server hands less than that to one connection.
	maxHeld = 1024
	// farewell bounds how long a closing agent or service waits for the server's answer. The server
	// notices the end without it, but later.
	farewell = 5 * time.Second
)

// TaskHandler does a task. Its result is encoded to JSON; an error fails the task, with the code
// and details of an *Error. ctx ends with the task and with the agent, and the handler has to
// return then. If the server cancelled the task, the cause is ErrCancelled and the result does not
// count.
type TaskHandler func(ctx context.Context, t *Task) (any, error)

// AgentOptions say who an agent is.
type AgentOptions struct {
	Options
	ID           string // the same after a restart; random if empty
	Name         string // needed: several agents of one name share its tasks
	Capabilities []string
	Description  string
	Manifest     map[string]any // further facts for others; may be nil
	Status       string         // StatusActive if empty
	Concurrency  int            // tasks at once, DefaultConcurrency if 0; more of them wait here
	// OnError is called with errors of the server that answer no call, one at a time. It must not
	// block. May be nil.
	OnError func(error)
}

// Agent does tasks. Its methods are safe for concurrent use, and wait for Run.
type Agent struct {
	opt    AgentOptions
	handle TaskHandler
	link   *caller
	slots  chan struct{}
	wg     sync.WaitGroup

	mu       sync.Mutex
	stopping bool
	status   string
	tasks    map[string]*Task
	children map[string]chan Message // by the id of the child task
	early    map[string]Message      // ends of children before a Wait
}

var _ role = (*Agent)(nil)

// NewAgent returns an agent that does its tasks with handle, once Run runs.
func NewAgent(opt AgentOptions, handle TaskHandler) (*Agent, error) {
	base, err := opt.withDefaults(agentPath)
	switch {
	case err != nil:
		return nil, err
	case opt.Name == "":
		return nil, errors.New("swarm: an agent needs a name")
	case handle == nil:
		return nil, errors.New("swarm: an agent needs a handler")
	}
	if opt.ID == "" {
		opt.ID = "agent-" + newID()
	}
	if opt.Concurrency <= 0 {
		opt.Concurrency = DefaultConcurrency
	}
	if opt.Status == "" {
		opt.Status = StatusActive
	}
	if opt.OnError == nil {
		opt.OnError = func(error) {}
	}
	a := &Agent{
		opt: opt, handle: handle, slots: make(chan struct{}, opt.Concurrency), status: opt.Status,
		tasks: map[string]*Task{}, children: map[string]chan Message{}, early: map[string]Message{},
	}
	a.link = newCaller(context.Background(), base, a)
	return a, nil
}

// ID returns the agent's id.
func (a *Agent) ID() string { return a.opt.ID }

// Run connects and does tasks until ctx ends, which returns nil, or until the server forbids a
// reconnect. The end of ctx ends the tasks' contexts; Run waits for their handlers and tells the
// server goodbye, which assigns unfinished tasks to other agents. It may be called once.
func (a *Agent) Run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- a.link.run() }()
	var err error
	select {
	case <-ctx.Done():
		a.stopTasks()
		a.wg.Wait()
		goodbye(ctx, a.link, asp.AgentUnregister, asp.AgentUnregistered)
		if e := <-ended; !errors.Is(e, ErrClosed) {
			err = e
		}
	case err = <-ended:
		a.stopTasks()
		a.wg.Wait()
	}
	a.link.stop()
	return err
}

// goodbye tells the server that a peer leaves, on the ready connection if any, and ends the link.
func goodbye(ctx context.Context, l *caller, say, answered string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if s := l.Current(); s != nil {
		_, _ = l.ask(ctx, s, request{kind: say, want: []string{answered}}) // without it the server waits for a reconnect
	}
	l.bye()
}

// Connected waits until the agent is registered.
func (a *Agent) Connected(ctx context.Context) error {
	_, err := a.link.up(ctx)
	return err
}

// query implements role.
func (a *Agent) query() url.Values { return nil }

// greet implements role.
func (a *Agent) greet(ctx context.Context, s *link.Conn) error {
	a.mu.Lock()
	status, tasks := a.status, slices.Sorted(maps.Keys(a.tasks))
	a.mu.Unlock()
	content := map[string]any{
		"id": a.opt.ID, "agentId": a.opt.ID, "name": a.opt.Name, "capabilities": append([]string{}, a.opt.Capabilities...), "status": status,
	}
	if a.opt.Description != "" {
		content["description"] = a.opt.Description
	}
	if a.opt.Manifest != nil {
		content["manifest"] = a.opt.Manifest
	}
	if len(tasks) <= asp.MaxList { // without this list the agent counts as holding all its tasks
		content["tasks"] = append([]string{}, tasks...)
	}
	_, err := a.link.register(ctx, s, request{kind: asp.AgentRegister, content: content, want: []string{asp.AgentRegistered}})
	return err
}

// take implements role.
func (a *Agent) take(m Message) {
	var err error
	switch m.Type {
	case asp.TaskExecute:
		err = a.begin(m)
	case asp.TaskCancel:
		err = a.cancelTask(m)
	case asp.TaskMessageResponse:
		err = a.said(m)
	case asp.ServiceNotified:
		err = a.notified(m)
	case asp.ChildResponse:
		err = a.childEnded(m)
	case asp.Error:
		err = errorOf(m)
	}
	if err != nil {
		a.opt.OnError(err)
	}
}

// begin starts a task, unless the agent has it already: the server repeats assignments after a
// reconnect.
func (a *Agent) begin(m Message) error {
	d, err := as[asp.TaskExecuteContent](m)
	if err != nil {
		return err
	}
	data := d.Input
	if len(data) == 0 {
		data = d.Data
	}
	t := &Task{
		agent: a, ID: d.TaskID, Type: d.Type, Data: data, Metadata: d.Metadata,
		messages: make(chan TaskMessage, maxMessages), calls: map[*listener]struct{}{},
	}
	if t.Type == "" {
		t.Type = d.TaskType
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case t.ID == "":
		return errors.New("swarm: the server gave a task without an id")
	case a.tasks[t.ID] != nil:
		return nil
	case a.stopping:
		return nil // goodbye is being said
	case len(a.tasks) >= maxHeld:
		a.wg.Go(func() { // the server assigns it to no other agent before this report
			a.report(a.link.ctx, t, nil, fmt.Errorf("the agent has %d tasks, which is its limit", maxHeld))
		})
		return nil
	}
	ctx, cancel := limited(a.link.ctx, d.Metadata.Timestamp, d.Metadata.Deadline)
	t.cancel = cancel
	a.tasks[t.ID] = t
	a.wg.Go(func() { a.do(ctx, t) })
	return nil
}

// do runs the handler and reports what became of the task.
func (a *Agent) do(ctx context.Context, t *Task) {
	defer a.forget(t)
	defer t.cancel(nil)
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return // the deadline is the server's to see
	}
	defer func() { <-a.slots }()
	result, err := a.guarded(ctx, t)
	if ctx.Err() != nil && (err != nil || errors.Is(context.Cause(ctx), ErrCancelled)) {
		return // the result does not count: the task ended, or another agent holds it
	}
	a.report(context.WithoutCancel(ctx), t, result, err)
}

// guarded runs the handler. A panic fails the task and not the process: the next one may
// be of another client.
func (a *Agent) guarded(ctx context.Context, t *Task) (result any, err error) {
	defer func() {
		if r := recover(); r != nil {
			a.opt.OnError(fmt.Errorf("swarm: the handler of task %s panicked: %v", t.ID, r))
			err = errors.New("the agent failed")
		}
	}()
	return a.handle(ctx, t)
}

func (a *Agent) forget(t *Task) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tasks[t.ID] == t {
		delete(a.tasks, t.ID)
	}
}

func (a *Agent) stopTasks() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopping = true
	for _, t := range a.tasks {
		t.cancel(ErrClosed)
	}
}

// cancelTask stops a task that is cancelled or no longer the agent's.
func (a *Agent) cancelTask(m Message) error {
	d, err := as[asp.CancelTaskContent](m)
	if err != nil {
		return err
	}
	if t := a.task(d.TaskID); t != nil {
		t.cancel(ErrCancelled)
	}
	return nil
}

func (a *Agent) task(id string) *Task {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tasks[id]
}

// SetStatus changes whether the agent is given tasks: only an active one is. It stays
// when the agent has to connect again.
func (a *Agent) SetStatus(ctx context.Context, status string) error {
	a.mu.Lock()
	a.status = status
	a.mu.Unlock()
	_, err := a.link.call(ctx, request{kind: asp.AgentStatus, content: map[string]any{"status": status}, want: []string{asp.AgentStatusUpdated}})
	return err
}

// Agents lists the agents, over all pages.
func (a *Agent) Agents(ctx context.Context, f Filter) ([]AgentEntry, error) {
	l, err := pages(ctx, a.link, f, request{kind: asp.AgentAgentList, want: []string{asp.AgentAgentListReply}}, agentsOf)
	return describeAgents(l), err
}

// Services lists the services, over all pages.
func (a *Agent) Services(ctx context.Context, f Filter) ([]ServiceEntry, error) {
	l, err := pages(ctx, a.link, f, request{kind: asp.AgentServiceList, want: []string{asp.AgentServiceListReply}}, servicesOf)
	for i := range l {
		describe(&l[i].Status, &l[i].State)
	}
	return l, err
}

// ServiceTools lists the tools of a service.
func (a *Agent) ServiceTools(ctx context.Context, service string) ([]ToolEntry, error) {
	l, err := ask[asp.ServiceToolsContent](ctx, a.link, request{
		kind: asp.ServiceToolsList, content: map[string]any{"serviceId": service}, want: []string{asp.ServiceToolsReply},
	})
	return l.Tools, err
}

// MCPServers lists the MCP servers, over all pages.
func (a *Agent) MCPServers(ctx context.Context, f Filter) ([]ServerEntry, error) {
	l, err := pages(ctx, a.link, f, request{kind: asp.AgentServerList, want: []string{asp.AgentServerListReply}}, serversOf)
	return describeServers(l), err
}

// MCPTools lists the tools of an MCP server.
func (a *Agent) MCPTools(ctx context.Context, server string) ([]ToolEntry, error) {
	l, err := ask[asp.ServerToolsContent](ctx, a.link, request{
		kind: asp.MCPToolsList, content: map[string]any{"serverId": server}, want: []string{asp.MCPToolsReply},
	})
	return l.Tools, err
}
