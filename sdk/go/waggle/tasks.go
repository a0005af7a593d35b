package waggle

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Tasks lists the tasks of the swarm, the newest change first.
func (c *Client) Tasks(ctx context.Context) ([]api.TaskSummary, error) {
	var l api.TaskPage
	raw, err := c.List(ctx, "tasks", "tasks")
	if err == nil {
		err = json.Unmarshal(raw, &l)
	}
	return l.Tasks, err
}

// CreateTask gives an agent of the swarm work, and returns the id of the task. It is made once, however often the request is repeated.
//
// Errors: AGENT_NOT_FOUND.
func (c *Client) CreateTask(ctx context.Context, t api.NewTask) (task string, err error) {
	if t.ID == "" {
		t.ID = newID()
	}
	name, err := call[api.TaskName](ctx, c, http.MethodPost, t, "tasks")
	return name.TaskID, err
}

// ShowTask returns a task with its newest events.
//
// Errors: PAYLOAD_LOST, SESSION_DELETED, TASK_NOT_FOUND.
func (c *Client) ShowTask(ctx context.Context, task string) (api.TaskDetail, error) {
	return call[api.TaskDetail](ctx, c, http.MethodGet, nil, "tasks", task)
}

// TaskResult waits for the result of a task. The error with which it failed or was cancelled is an *Error.
func (c *Client) TaskResult(ctx context.Context, task string) (json.RawMessage, error) {
	for e, err := range c.Log(id.KindTask, task).Events(ctx, ReadOptions{}) {
		if err != nil {
			return nil, err
		}
		if e.Type != event.TaskFinished {
			continue
		}
		d, err := event.As[event.TaskFinishedData](e)
		switch {
		case err != nil:
			return nil, err
		case d.Status == "completed":
			return d.Result, nil
		}
		failed := &Error{Code: d.Code, Message: d.Error, Detail: e.Data}
		if failed.Code == "" {
			failed.Code = "TASK_FAILED"
		}
		if failed.Message == "" {
			failed.Message = "the task is " + d.Status
		}
		return nil, failed
	}
	return nil, ErrClosed
}

// CancelTask stops a task.
//
// Errors: SESSION_DELETED, TASK_FINISHED, TASK_NOT_FOUND.
func (c *Client) CancelTask(ctx context.Context, task, reason string) error {
	_, err := call[api.Accepted](ctx, c, http.MethodPost, api.CancelTask{Reason: reason}, "tasks", task, "cancel")
	return err
}

// RetryTask submits a task that failed or was cancelled again, as a new one, and returns the id of that one.
//
// Errors: AGENT_NOT_FOUND, PAYLOAD_LOST, SESSION_DELETED, TASK_FINISHED, TASK_NOT_FOUND, TASK_OPEN.
func (c *Client) RetryTask(ctx context.Context, task string) (again string, err error) {
	name, err := call[api.TaskName](ctx, c, http.MethodPost, api.RetryTask{ID: newID()}, "tasks", task, "retry")
	return name.TaskID, err
}

// MessageTask tells the agent of a task something, any JSON but null, or answers its question.
//
// Errors: SESSION_DELETED, TASK_FINISHED, TASK_NOT_FOUND.
func (c *Client) MessageTask(ctx context.Context, task string, message json.RawMessage) error {
	_, err := call[api.Accepted](ctx, c, http.MethodPost, api.TaskMessage{ID: newID(), Message: message}, "tasks", task, "messages")
	return err
}
