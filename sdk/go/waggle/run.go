package waggle

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"iter"
	"net/http"

	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Run is all work that answers one message.
type Run struct {
	client *Client

	Session string // of the message
	ID      string // of the message: sent again with it, the message counts once
	RunID   string
	Seq     uint64 // of the event with which the message was received
}

// CreateSession makes a session with preferences for all its messages, and returns its id. A repeat with the same SessionID returns the
// same session. Without one the session is new.
//
// Errors: SESSION_DELETED, SESSION_EXISTS.
func (c *Client) CreateSession(ctx context.Context, s api.NewSession) (session string, err error) {
	if s.SessionID == "" {
		s.SessionID = newID()
	}
	name, err := call[api.SessionName](ctx, c, http.MethodPost, s, "sessions")
	return name.SessionID, err
}

// File returns a file for a message. Models see PNG, JPEG, GIF and WebP, and read text. The files of a message have at most 128 KiB, of
// which 64 KiB may be text.
func File(mediaType, name string, data []byte) api.MessageFile {
	return api.MessageFile{MediaType: mediaType, Name: name, Data: base64.StdEncoding.EncodeToString(data)}
}

// Send sends a session a message, or a new session if the id is empty, and returns once the log has it. It counts once, however often
// the request is repeated; so does one that is sent again with its ID, also by another process.
//
// Errors: AGENT_NOT_FOUND, BUDGET_EXCEEDED, MODEL_NOT_FOUND, QUEUE_FULL, SESSION_BUSY, SESSION_CLOSED, SESSION_DELETED, SESSION_EXISTS,
// SESSION_NOT_FOUND.
func (c *Client) Send(ctx context.Context, session string, m api.NewMessage) (*Run, error) {
	if session == "" {
		session, m.CreateSession = newID(), true
	}
	if m.ID == "" {
		m.ID = newID()
	}
	a, err := call[api.Accepted](ctx, c, http.MethodPost, m, "sessions", session, "messages")
	if err != nil {
		return nil, err
	}
	return &Run{client: c, Session: session, ID: m.ID, RunID: a.RunID, Seq: a.Seq}, nil
}

// Solve has steps carried out without planning.
func (c *Client) Solve(ctx context.Context, session string, steps []event.Step, o api.RunOptions) (*Run, error) {
	return c.Send(ctx, session, api.NewMessage{Mode: event.ModeSteps, Steps: steps, RunOptions: o})
}

// Events returns the events of the run, from the first one to the one that ends it.
func (r *Run) Events(ctx context.Context) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range r.client.Log(id.KindSession, r.Session).Events(ctx, ReadOptions{After: r.Seq - min(r.Seq, 1)}) {
			if err != nil {
				yield(e, err)
				return
			}
			if runOf(e) != r.RunID {
				continue
			}
			if !yield(e, nil) || isEnd(e.Type) {
				return
			}
		}
	}
}

// Result waits for the answer. The error with which the run failed is an *Error, of one that was stopped with the code RUN_CANCELLED.
func (r *Run) Result(ctx context.Context) (Answer, error) {
	for e, err := range r.Events(ctx) {
		if err != nil {
			return Answer{}, err
		}
		switch e.Type {
		case event.RunCompleted:
			return completed(e)
		case event.RunFailed:
			d, err := event.As[event.RunFailedData](e)
			if err == nil {
				err = &Error{Code: d.Code, Message: d.Message, Detail: e.Data}
			}
			return Answer{}, err
		case event.RunCancelled:
			return Answer{}, &Error{Code: string(fault.RunCancelled), Message: "The run was stopped.", Detail: e.Data}
		}
	}
	return Answer{}, ErrClosed
}

// Cancel stops the run. Its events say when it has ended.
func (r *Run) Cancel(ctx context.Context, reason string) error {
	_, err := call[api.Accepted](ctx, r.client, http.MethodPost, api.CancelSession{RunID: r.RunID, Reason: reason}, "sessions", r.Session, "cancel")
	return err
}

func completed(e event.Event) (Answer, error) {
	d, err := event.As[event.RunCompletedData](e)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Text: d.Content, Status: d.Outcome, StopReason: d.StopReason}
	if a.Status == "" {
		a.Status = "success"
	}
	if d.Usage == nil {
		return a, nil
	}
	for _, tokens := range []*int64{d.Usage.InputTokens, d.Usage.OutputTokens} {
		if tokens != nil {
			a.Tokens += *tokens
		}
	}
	if d.Usage.CostUSD != nil {
		a.CostUSD = *d.Usage.CostUSD
	}
	return a, nil
}

func runOf(e event.Event) string {
	var of struct {
		RunID string `json:"run_id"`
	}
	if json.Unmarshal(e.Data, &of) != nil {
		return "" // of no run
	}
	return of.RunID
}

func isEnd(t event.Type) bool {
	return t == event.RunCompleted || t == event.RunFailed || t == event.RunCancelled
}

// CancelStep stops a step of the active run of a session.
//
// Errors: RUN_NOT_FOUND, RUN_OVER, SESSION_DELETED, SESSION_NOT_FOUND, TASK_NOT_FOUND.
func (c *Client) CancelStep(ctx context.Context, session, step string, a api.StepAction) error {
	return c.step(ctx, session, step, "cancel", a)
}

// RestartStep carries a step out again that failed or was cancelled, also after the end of the run.
//
// Errors: RUN_NOT_FOUND, RUN_OVER, SESSION_DELETED, SESSION_NOT_FOUND, TASK_NOT_FOUND.
func (c *Client) RestartStep(ctx context.Context, session, step string, a api.StepAction) error {
	return c.step(ctx, session, step, "restart", a)
}

func (c *Client) step(ctx context.Context, session, step, verb string, a api.StepAction) error {
	if a.ID == "" {
		a.ID = newID()
	}
	_, err := call[api.Accepted](ctx, c, http.MethodPost, a, "sessions", session, "runs", "last", "steps", step, verb)
	return err
}

// CancelPlan gives up a plan of a session whose steps have not begun.
//
// Errors: RUN_OVER, SESSION_DELETED, SESSION_NOT_FOUND.
func (c *Client) CancelPlan(ctx context.Context, session, reason string) error {
	_, err := call[api.Accepted](ctx, c, http.MethodPost, api.CancelPlan{ID: newID(), Reason: reason}, "sessions", session, "plan", "cancel")
	return err
}

// Replan has the plan of a session made again, for another question or the same.
//
// Errors: MODEL_NOT_FOUND, QUEUE_FULL, RUN_OVER, SESSION_BUSY, SESSION_CLOSED, SESSION_DELETED, SESSION_NOT_FOUND.
func (c *Client) Replan(ctx context.Context, session string, p api.NewPlan) error {
	if p.ID == "" {
		p.ID = newID()
	}
	_, err := call[api.Accepted](ctx, c, http.MethodPost, p, "sessions", session, "replan")
	return err
}

// CloseSession ends a session: it takes no further message, and its log stays.
//
// Errors: SESSION_DELETED, SESSION_NOT_FOUND.
func (c *Client) CloseSession(ctx context.Context, session string) error {
	_, err := call[api.Accepted](ctx, c, http.MethodPost, nil, "sessions", session, "close")
	return err
}
