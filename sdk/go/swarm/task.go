package swarm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/sdk/go/link"
)

const (
	// maxMessages is how many messages of the client wait for a handler that does not
	// read them; of more the oldest are lost.
	maxMessages = 64
	// reportMaxWait bounds how long the end of a task is tried to be reported to a
	// server that is away: after 45 s it has given the task to another agent.
	reportMaxWait = 2 * time.Minute
	// answerSlack is added to the time that the server allows for an answer, which it
	// says itself when that is over.
	answerSlack = 10 * time.Second
	// DefaultAskTimeout is the server's own for questions.
	DefaultAskTimeout = 30 * time.Second
	// DefaultCallTimeout is for tools whose caller gives no time: longer than most run.
	DefaultCallTimeout = time.Minute
)

// Task is a task that an agent does. Its methods are for its handler and the goroutines
// that it waits for.
type Task struct {
	ID       string
	Type     string          // may be empty
	Data     json.RawMessage // as the task was created
	Metadata TaskMetadata

	agent    *Agent
	cancel   context.CancelCauseFunc
	messages chan TaskMessage
	calls    map[*listener]struct{} // under agent.mu
}

// TaskMessage is a message of the task's client.
type TaskMessage struct {
	Type     string          `json:"messageType"`
	Message  json.RawMessage `json:"message"`
	ClientID string          `json:"clientId"`
}

// Decode reads the data of the task.
func (t *Task) Decode(v any) error {
	if err := json.Unmarshal(t.Data, v); err != nil {
		return &Error{Code: string(fault.ToolBadInput), Message: "the data of the task is not what the agent expects: " + err.Error()}
	}
	return nil
}

// Messages is where the client's messages arrive that answer no question.
func (t *Task) Messages() <-chan TaskMessage { return t.messages }

// Notification is a notice of an agent or a service during its work.
type Notification struct {
	Type    string // Progress, Info, Warning, Failure, Debug, Step, Status; Info if empty
	Message string
	Data    any // may be nil
}

// Notify sends the client a notification, and returns when the server has accepted it. After a
// broken connection it is sent again, so that the client may get it twice.
func (t *Task) Notify(ctx context.Context, n Notification) error {
	content := map[string]any{"taskId": t.ID, "agentId": t.agent.opt.ID, "notificationType": orInfo(n.Type), "message": n.Message}
	if n.Data != nil {
		content["data"] = n.Data
	}
	_, err := t.agent.link.call(ctx, request{kind: asp.TaskNotification, content: content, want: []string{asp.TaskMessageReceived}})
	return err
}

func orInfo(kind string) string {
	if kind == "" {
		return Info
	}
	return kind
}

// Progress tells how far the task is: part is from 0 to 1.
func (t *Task) Progress(ctx context.Context, part float64, text string) error {
	return t.Notify(ctx, Notification{Type: Progress, Message: text, Data: map[string]any{"progress": part * 100}})
}

// Question is a question of an agent to the client.
type Question struct {
	Message any           // a text, or anything that encodes to JSON
	Options []string      // answers to choose from; may be empty
	Type    string        // input_request if empty
	Timeout time.Duration // DefaultAskTimeout if 0
}

// Ask asks the client a question and waits for the answer. Without an answer in time the error is
// an *Error with the code INPUT_EXPIRED, and the task continues.
func (t *Task) Ask(ctx context.Context, q Question) (json.RawMessage, error) {
	if q.Timeout <= 0 {
		q.Timeout = DefaultAskTimeout
	}
	content := map[string]any{"taskId": t.ID, "agentId": t.agent.opt.ID, "message": q.Message, "timeout": millis(q.Timeout)}
	if len(q.Options) > 0 {
		content["options"] = q.Options
	}
	if q.Type != "" {
		content["messageType"] = q.Type
	}
	r, err := ask[TaskMessage](ctx, t.agent.link, request{
		kind: asp.TaskRequestMessage, content: content, want: []string{asp.TaskMessageResponse}, maxWait: q.Timeout + answerSlack,
		// Asked again after a connection that broke, it is the open question itself.
		shrug: func(e *Error, sent int) bool { return sent > 1 && e.Code == string(fault.QueueFull) },
	})
	return r.Message, err
}

// said delivers a message of the client that answers no question.
func (a *Agent) said(m Message) error {
	d, err := as[asp.TaskMessageResponseContent](m)
	if err != nil {
		return err
	}
	t := a.task(d.TaskID)
	if t == nil || d.InputID != "" || m.RequestID != "" {
		return nil // the task is over, or the asking handler has its answer or has stopped waiting
	}
	said := TaskMessage{Type: d.MessageType, Message: d.Message, ClientID: d.ClientID}
	for {
		select {
		case t.messages <- said:
			return nil
		default:
		}
		select {
		case <-t.messages:
		default:
		}
	}
}

// Call says how a tool is to be run.
type Call struct {
	Timeout  time.Duration             // DefaultCallTimeout if 0
	OnNotify func(ServiceNotification) // gets notifications of the service about the task's calls; must not block; may be nil
}

// CallService runs a tool of a service within the task, and returns its result. A tool
// that fails is an *Error. Of a call whose answer is lost with the connection it is not
// known whether it had its effect: then it is ErrInterrupted.
func (t *Task) CallService(ctx context.Context, service, tool string, params any, how Call) (json.RawMessage, error) {
	if how.Timeout <= 0 {
		how.Timeout = DefaultCallTimeout
	}
	defer t.listen(service, how.OnNotify)()
	r, err := ask[ServiceExecution](ctx, t.agent.link, request{
		kind: asp.ServiceExecute, want: []string{asp.ServiceExecuteReply}, loss: await, maxWait: how.Timeout + answerSlack,
		content: toolCall{TaskID: t.ID, ServiceID: service, ToolID: tool, Params: orEmpty(params), Timeout: millis(how.Timeout)},
	})
	if err == nil {
		err = failed(r.Status, r.Error, r.Code, t.ID)
	}
	return r.Result, err
}

// listener gets notifications of a service.
type listener struct {
	service string
	hear    func(ServiceNotification)
}

// listen has notifications of a service about the task handed to f until the returned
// function is called.
func (t *Task) listen(service string, f func(ServiceNotification)) func() {
	if f == nil {
		return func() {}
	}
	l := &listener{service, f}
	t.agent.mu.Lock()
	defer t.agent.mu.Unlock()
	t.calls[l] = struct{}{}
	return func() {
		t.agent.mu.Lock()
		defer t.agent.mu.Unlock()
		delete(t.calls, l)
	}
}

// notified delivers a notice of a service about a call.
func (a *Agent) notified(m Message) error {
	n, err := as[ServiceNotification](m)
	if err != nil {
		return err
	}
	var heard []*listener
	a.mu.Lock()
	if t := a.tasks[n.TaskID]; t != nil {
		for l := range t.calls {
			if l.service == n.ServiceID {
				heard = append(heard, l)
			}
		}
	}
	a.mu.Unlock()
	for _, l := range heard {
		l.hear(n)
	}
	return nil
}

// CallMCP runs a tool of an MCP server within the task, as CallService does.
func (t *Task) CallMCP(ctx context.Context, server, tool string, params any, timeout time.Duration) (json.RawMessage, error) {
	if timeout <= 0 {
		timeout = DefaultCallTimeout
	}
	r, err := ask[MCPExecution](ctx, t.agent.link, request{
		kind: asp.ToolExecute, want: []string{asp.ToolExecuteReply}, loss: await, maxWait: timeout + answerSlack,
		content: toolCall{TaskID: t.ID, ServerID: server, ToolName: tool, Parameters: orEmpty(params), Timeout: millis(timeout)},
	})
	if err == nil {
		err = failed(r.Status, r.Error, r.Code, t.ID)
	}
	return r.Result, err
}

// report tells the server the end of a task, until it is known to have it.
func (a *Agent) report(ctx context.Context, t *Task, result any, err error) {
	ctx, cancel := context.WithTimeout(ctx, reportMaxWait)
	defer cancel()
	kind, content := asp.AgentTaskResult, map[string]any{"taskId": t.ID, "agentId": a.opt.ID, "result": result}
	if _, cannot := json.Marshal(result); err == nil && cannot != nil {
		err = fmt.Errorf("the result cannot be encoded: %w", cannot)
	}
	if err != nil {
		kind, content = asp.TaskError, failureOf(t.ID, a.opt.ID, err)
	}
	if err := a.deliver(ctx, kind, content); err != nil && !errors.Is(err, ErrClosed) {
		a.opt.OnError(fmt.Errorf("swarm: the end of task %s: %w", t.ID, err))
	}
}

// failureOf is the content of task.error.
func failureOf(task, agent string, err error) map[string]any {
	content := map[string]any{"taskId": task, "agentId": agent, "error": err.Error()}
	if e, ok := errors.AsType[*Error](err); ok {
		content["error"] = e.Message
		if e.Code != "" {
			content["code"] = e.Code
		}
		if len(e.Details) > 0 {
			content["details"] = e.Details
		}
	}
	return content
}

// deliver sends a frame that has no answer until the server is known to have it: it
// answers a ping, and it takes up frames in their order.
func (a *Agent) deliver(ctx context.Context, kind string, content any) error {
	id := newID()
	frame, err := encode(id, kind, content)
	if err != nil {
		return err
	}
	refused := &waiter{reply: make(chan Message, 1)}
	a.link.expect(id, refused)
	defer a.link.forget(id)
	for sent := 0; ; sent++ {
		s, err := a.link.up(ctx)
		if err != nil {
			return err
		}
		if err = s.Send(ctx, frame); err == nil {
			_, err = a.link.ask(ctx, s, request{kind: asp.Ping, want: []string{asp.Pong}})
		}
		if err == nil || !errors.Is(err, link.ErrLost) {
			return errors.Join(err, refusedAt(refused, sent))
		}
	}
}

// refusedAt returns why the server refused a frame, or nil. A repeated frame is not refused because
// the server has the end of the task already.
func refusedAt(w *waiter, sent int) error {
	select {
	case m := <-w.reply:
		e := errorOf(m)
		if sent > 0 && e.Code == string(fault.TaskFinished) {
			return nil
		}
		return e
	default:
		return nil
	}
}
