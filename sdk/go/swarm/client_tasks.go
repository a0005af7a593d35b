package swarm

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
)

// Handle is a task that a client has given.
type Handle struct {
	c    *Client
	id   string
	once sync.Once
	done chan struct{}
	end  TaskResult
	err  error
}

// ID returns the id of the task.
func (h *Handle) ID() string { return h.id }

// Done is closed when the task has ended, or its end cannot become known.
func (h *Handle) Done() <-chan struct{} { return h.done }

// Wait waits for the end of the task. The error of a failed or cancelled task is an *Error, also as
// the result's. The task continues if ctx ends. After a lost connection Wait continues on the next
// one; ErrInterrupted says that the server no longer knew the client.
func (h *Handle) Wait(ctx context.Context) (TaskResult, error) {
	select {
	case <-h.done:
		return h.end, h.err
	case <-ctx.Done():
		return TaskResult{TaskID: h.id}, ctx.Err()
	}
}

// Cancel stops the task. The server tells its agent.
func (h *Handle) Cancel(ctx context.Context, reason string) error {
	return h.c.Cancel(ctx, h.id, reason)
}

// Message tells the agent something, or answers its open question.
func (h *Handle) Message(ctx context.Context, message any) error {
	return h.c.TaskMessage(ctx, h.id, message)
}

// Status returns how the task is.
func (h *Handle) Status(ctx context.Context) (TaskStatus, error) { return h.c.TaskStatus(ctx, h.id) }

func (h *Handle) settle(end TaskResult, err error) {
	h.once.Do(func() {
		h.end, h.err = end, err
		close(h.done)
	})
}

// endOf returns the error that the end of a task is.
func endOf(r TaskResult) error {
	if r.Status == TaskStatusCompleted && r.Error == "" {
		return nil
	}
	message := r.Error
	if message == "" {
		message = "the task has ended: " + r.Status
	}
	return &Error{Code: r.Code, Message: message, Details: r.Details, TaskID: r.TaskID, Status: r.Status}
}

// finish settles the task that a result is about.
func (c *Client) finish(m Message) {
	r, err := as[TaskResult](m)
	if err == nil {
		err = endOf(r)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.tasks[r.TaskID]; h != nil {
		delete(c.tasks, r.TaskID)
		h.settle(r, err)
	}
}

// watch returns the handle of a task, and creates it if needed.
func (c *Client) watch(task string) *Handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.tasks[task]
	if h == nil {
		h = &Handle{c: c, id: task, done: make(chan struct{})}
		c.tasks[task] = h
	}
	if err := c.link.failure(); err != nil {
		h.settle(TaskResult{TaskID: task}, err)
		delete(c.tasks, task)
	}
	return h
}

// CreateTask gives a task and returns once the server has accepted it.
func (c *Client) CreateTask(ctx context.Context, t NewTask) (*Handle, error) {
	var h *Handle
	m, err := c.link.call(ctx, request{
		kind: asp.TaskCreateRequest, content: t.content(), want: []string{asp.TaskCreateResponse, asp.TaskResult},
		loss: await, maxWait: replayMaxWait,
		on: func(m Message) {
			if r, err := as[TaskCreated](m); err == nil && r.TaskID != "" {
				h = c.watch(r.TaskID)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, &Error{Message: "the server's answer of type " + m.Type + " names no task"}
	}
	return h, nil
}

// SendTask gives a task and waits for its end: CreateTask and Wait. The task continues if ctx ends
// after the server has accepted it.
func (c *Client) SendTask(ctx context.Context, t NewTask) (TaskResult, error) {
	h, err := c.CreateTask(ctx, t)
	if err != nil {
		return TaskResult{}, err
	}
	return h.Wait(ctx)
}

// Attach returns the handle of a task that was given before, by this client in another
// process for example. A task that is not this client's ends for it only if it has ended
// already.
func (c *Client) Attach(ctx context.Context, task string) (*Handle, error) {
	h := c.watch(task)
	s, err := c.TaskStatus(ctx, task)
	if err != nil {
		return nil, err
	}
	switch s.Status {
	case TaskStatusCompleted, TaskStatusFailed, TaskStatusCancelled:
		r := TaskResult{
			TaskID: task, AgentID: s.AgentID, AgentName: s.AgentName, Status: s.Status, Result: s.Result,
			CreatedAt: s.CreatedAt, CompletedAt: s.CompletedAt,
		}
		if s.Status != TaskStatusCompleted && len(s.Result) > 0 {
			var f asp.TaskFailure
			if err := json.Unmarshal(s.Result, &f); err != nil {
				return nil, fmt.Errorf("read the failure of task %s: %w", task, err)
			}
			r.Result, r.Error, r.Code = f.Result, f.Error, f.Code
		}
		c.mu.Lock()
		delete(c.tasks, task)
		c.mu.Unlock()
		h.settle(r, endOf(r))
	}
	return h, nil
}

// TaskStatus returns how a task is.
func (c *Client) TaskStatus(ctx context.Context, task string) (TaskStatus, error) {
	return ask[TaskStatus](ctx, c.link, request{
		kind: asp.TaskStatusRequest, content: map[string]any{"taskId": task}, want: []string{asp.TaskStatusResponse},
	})
}

// TaskMessage tells the agent of a task something, or answers its open question.
func (c *Client) TaskMessage(ctx context.Context, task string, message any) error {
	_, err := c.link.call(ctx, request{
		kind: asp.TaskMessage, content: map[string]any{"taskId": task, "message": message}, want: []string{asp.TaskMessageSent},
		loss: await, maxWait: replayMaxWait,
	})
	return err
}

// Cancel stops a task. The reason may be empty. One that has ended already is an *Error
// with the code TASK_FINISHED.
func (c *Client) Cancel(ctx context.Context, task, reason string) error {
	content := map[string]any{"taskId": task}
	if reason != "" {
		content["reason"] = reason
	}
	_, err := c.link.call(ctx, request{kind: asp.TaskCancelRequest, content: content, want: []string{asp.TaskCancelResponse}})
	return err
}

// Agents lists the agents, over all pages.
func (c *Client) Agents(ctx context.Context, f Filter) ([]AgentEntry, error) {
	l, err := pages(ctx, c.link, f, request{kind: asp.AgentListRequest, want: []string{asp.AgentListResponse}}, agentsOf)
	return describeAgents(l), err
}

// MCPServers lists the MCP servers, over all pages.
func (c *Client) MCPServers(ctx context.Context, f Filter) ([]ServerEntry, error) {
	l, err := pages(ctx, c.link, f, request{kind: asp.ServerListRequest, want: []string{asp.ServerListResponse}}, serversOf)
	return describeServers(l), err
}

// MCPTools lists the tools of an MCP server.
func (c *Client) MCPTools(ctx context.Context, server string) ([]ToolEntry, error) {
	l, err := ask[asp.ServerToolsContent](ctx, c.link, request{
		kind: asp.ServerTools, content: map[string]any{"serverId": server}, want: []string{asp.ServerTools},
	})
	return l.Tools, err
}

// RunMCPTool runs a tool of an MCP server. The error of a failed tool is an *Error, together with the
// outcome.
func (c *Client) RunMCPTool(ctx context.Context, server, tool string, params any) (MCPExecution, error) {
	r, err := ask[MCPExecution](ctx, c.link, request{
		kind: asp.ToolExecute, content: toolCall{ServerID: server, ToolName: tool, Parameters: orEmpty(params)},
		want: []string{asp.MCPTaskExecution}, loss: once,
	})
	if err == nil {
		err = failed(r.Status, r.Error, r.Code, r.TaskID)
	}
	return r, err
}

// Clients lists the clients, over all pages.
func (c *Client) Clients(ctx context.Context, f Filter) ([]ClientEntry, error) {
	content := map[string]any{"status": f.Status, "clientType": f.Type, "name": f.Name, "capabilities": f.Capabilities}
	for name, v := range content {
		if s, ok := v.(string); ok && s == "" || name == "capabilities" && len(f.Capabilities) == 0 {
			delete(content, name)
		}
	}
	l, err := pages(ctx, c.link, content, request{kind: asp.ClientList, want: []string{asp.ClientListResponse}}, clientsOf)
	for i := range l {
		describe(&l[i].Status, &l[i].State)
	}
	return l, err
}

// MessageClient sends a message to another client, and returns when the server has accepted it. The
// server keeps it while the other client is away.
func (c *Client) MessageClient(ctx context.Context, client, kind string, data any) error {
	content := map[string]any{"targetClientId": client, "data": data}
	if kind != "" {
		content["messageType"] = kind
	}
	_, err := c.link.call(ctx, request{kind: asp.ClientMessage, content: content, want: []string{asp.MessageSent}, loss: once})
	return err
}

// ask is call with the content of the answer.
func ask[T any](ctx context.Context, l *caller, r request) (T, error) {
	m, err := l.call(ctx, r)
	if err != nil {
		var none T
		return none, err
	}
	return as[T](m)
}

// pages asks for all pages of a list, and returns its entries. of returns those of a page and the place of the next one.
func pages[L, E any](ctx context.Context, l *caller, filter any, r request, of func(L) ([]E, string)) (all []E, err error) {
	for at := (filters{Filters: filter}); ; {
		r.content = at
		page, err := ask[L](ctx, l, r)
		if err != nil {
			return nil, err
		}
		some, next := of(page)
		all = append(all, some...)
		if next == "" || next == at.After {
			return all, nil
		}
		at.After = next
	}
}

func agentsOf(l asp.AgentListContent) ([]AgentEntry, string)       { return l.Agents, l.Next }
func servicesOf(l asp.ServiceListContent) ([]ServiceEntry, string) { return l.Services, l.Next }
func serversOf(l asp.ServerListContent) ([]ServerEntry, string)    { return l.Servers, l.Next }
func clientsOf(l asp.ClientListContent) ([]ClientEntry, string)    { return l.Clients, l.Next }

// toolCall is the content of a request to run a tool of an MCP server or a service.
type toolCall struct {
	TaskID     string `json:"taskId,omitempty"`
	ServerID   string `json:"serverId,omitempty"`
	ToolName   string `json:"toolName,omitempty"`
	Parameters any    `json:"parameters,omitempty"`
	ServiceID  string `json:"serviceId,omitempty"`
	ToolID     string `json:"toolId,omitempty"`
	Params     any    `json:"params,omitempty"`
	Timeout    int64  `json:"timeout,omitempty"`
}

// orEmpty returns parameters that are never null.
func orEmpty(params any) any {
	if params == nil {
		return json.RawMessage("{}")
	}
	return params
}

// failed returns the error that the outcome of a call is.
func failed(status, text, code, task string) error {
	if text == "" && (status == "success" || status == TaskStatusCompleted) {
		return nil
	}
	if text == "" {
		text = "the call has ended: " + status
	}
	return &Error{Code: code, Message: text, TaskID: task}
}
