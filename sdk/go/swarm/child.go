package swarm

import (
	"context"
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
)

// maxEarly bounds the ends of child tasks that arrive before a Wait for them, in the moment between
// two frames.
const maxEarly = 256

// Child says what another agent is to do for a task.
type Child struct {
	AgentID     string // the agent with this id, else one with this name
	AgentName   string
	Type        string // of the task; may be empty
	Description string
	Data        any
	Timeout     time.Duration // of the child task; 0 = the server's setting
}

// Child gives a child task to another agent and waits for its end. The error of a failed or
// cancelled child is an *Error.
func (t *Task) Child(ctx context.Context, c Child) (json.RawMessage, error) {
	content := map[string]any{"parentTaskId": t.ID, "taskData": c.Data}
	for name, value := range map[string]string{"targetAgentId": c.AgentID, "targetAgent": c.AgentName, "taskType": c.Type, "description": c.Description} {
		if value != "" {
			content[name] = value
		}
	}
	if c.Timeout > 0 {
		content["timeout"] = millis(c.Timeout)
	}
	child, err := t.agent.spawn(ctx, content)
	if err != nil {
		return nil, err
	}
	end := t.agent.awaitChild(child)
	defer t.agent.leaveChild(child)
	select {
	case m := <-end:
		d, err := as[asp.ChildResponseContent](m)
		if err == nil {
			err = failed(d.Status, d.Error, d.Code, child)
		}
		return d.Result, err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.agent.link.Done():
		return nil, t.agent.link.failure()
	}
}

// spawn requests a child task and returns its id.
func (a *Agent) spawn(ctx context.Context, content any) (string, error) {
	d, err := ask[asp.ChildAcceptedContent](ctx, a.link, request{
		kind: asp.AgentRequest, content: content, want: []string{asp.ChildAccepted}, loss: await, maxWait: replayMaxWait,
	})
	return d.ChildTaskID, err
}

func (a *Agent) awaitChild(child string) <-chan Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	end := make(chan Message, 1)
	if m, ok := a.early[child]; ok {
		end <- m
		delete(a.early, child)
		return end
	}
	a.children[child] = end
	return end
}

func (a *Agent) leaveChild(child string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.children, child)
}

// childEnded reports the end of a child task to its waiter.
func (a *Agent) childEnded(m Message) error {
	d, err := as[asp.ChildResponseContent](m)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if end := a.children[d.ChildTaskID]; end != nil {
		delete(a.children, d.ChildTaskID)
		end <- m // has room for one
		return nil
	}
	if a.tasks[d.ParentTaskID] != nil && len(a.early) < maxEarly {
		a.early[d.ChildTaskID] = m
	}
	return nil
}
