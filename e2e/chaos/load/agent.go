package load

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/e2e/chaos/site"
	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// agent is an agent of the swarm that does one task at a time. No frame tells an agent that its result has arrived, so
// that it sends all results again on each connection.
type agent struct {
	who   string
	name  string
	conn  *client.Reconnecting
	tasks chan string

	mu      sync.Mutex
	results map[string]string // frames, by task
}

// startAgents connects the agents of a tenant.
func (l *Load) startAgents(ctx context.Context, tenant string) {
	for i := range agentsPerTenant {
		a := &agent{who: l.nameOf(tenant, "agent", i), name: l.worker(tenant), tasks: make(chan string, 1024), results: map[string]string{}}
		a.conn = client.NewReconnecting(client.ReconnectOptions{
			Addrs: l.addrs(), First: i, Key: site.KeyOf(tenant), Path: func() string { return "/ws/asp/agent" }, Begin: a.begin, Take: a.take,
		})
		go func() { _ = a.conn.Run(ctx) }() // the clients wait for the tasks of an agent that gives up
		go a.work(ctx)
	}
}

// registers is the id of an agent's registration.
const registers = "register"

func (a *agent) registration() string {
	return swarmJSON(registers, "agent.register", map[string]any{"id": a.who, "name": a.name, "capabilities": []string{"work"}})
}

func (a *agent) begin(send func(string) bool) {
	send(a.registration())
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, frame := range a.results {
		send(frame)
	}
}

func (a *agent) take(raw string) {
	var f swarmFrame
	_ = json.Unmarshal([]byte(raw), &f) // other frames are for clients
	switch f.Type {
	case "ping":
		a.conn.Send(`{"type":"pong"}`)
	case "error":
		if f.Request == registers && f.Content.Code == string(fault.BusUnavailable) {
			time.AfterFunc(refusalPause, func() { a.conn.Send(a.registration()) })
		}
	case "task.execute":
		a.mu.Lock()
		frame, done := a.results[f.ID]
		a.mu.Unlock()
		if done {
			a.conn.Send(frame)
			return
		}
		a.tasks <- f.ID
	}
}

func (a *agent) work(ctx context.Context) {
	for {
		select {
		case task := <-a.tasks:
			if process.Rest(ctx, taskTime) != nil {
				return
			}
			frame := swarmJSON("result-"+task, "agent.task.result", map[string]any{"taskId": task, "result": a.who + " did it"})
			a.mu.Lock()
			a.results[task] = frame
			a.mu.Unlock()
			a.conn.Send(frame)
		case <-ctx.Done():
			return
		}
	}
}
