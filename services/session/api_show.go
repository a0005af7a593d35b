package session

import (
	"net/http"
	"time"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/plan"
)

// Detail is one session with its runs.
type Detail struct {
	SessionID string      `json:"session_id"`
	Status    string      `json:"status"` // open, closed
	Dialect   string      `json:"dialect"`
	Language  string      `json:"language,omitempty"`
	CreatedAt time.Time   `json:"created_at"`
	UpdatedAt time.Time   `json:"updated_at"`
	LastSeq   uint64      `json:"last_seq"`
	Stats     event.Stats `json:"stats"`
	Runs      []RunDetail `json:"runs"`
}

// RunDetail is one run of a session. Stage and what follows are those of runs that
// plan, solve and aggregate.
type RunDetail struct {
	RunID       string       `json:"run_id"`
	ExecutionID string       `json:"execution_id,omitempty"`
	MessageID   string       `json:"message_id"`
	Mode        string       `json:"mode,omitempty"` // absent (chat), plan, tasks
	Status      string       `json:"status"`
	Attempt     int          `json:"attempt"`
	Content     string       `json:"content"`
	Answer      string       `json:"answer,omitempty"`
	Stage       string       `json:"stage,omitempty"` // planning, confirmation, solving, aggregation, done
	Outcome     string       `json:"outcome,omitempty"`
	Tasks       []TaskDetail `json:"tasks,omitempty"`
}

// TaskDetail is one task of a run.
type TaskDetail struct {
	TaskID       string   `json:"task_id"`
	Title        string   `json:"title"`
	Status       string   `json:"status"` // waiting, running, completed, failed, cancelled
	Attempt      int      `json:"attempt"`
	Dependencies []string `json:"dependencies,omitempty"`
	Output       string   `json:"output,omitempty"`
	Error        string   `json:"error,omitempty"`
}

var taskStates = map[plan.State]string{
	plan.Waiting: "waiting", plan.Running: "running", plan.Done: "completed", plan.Failed: "failed", plan.Cancelled: "cancelled",
}

func (a *API) show(r *http.Request, p auth.Principal) (any, error) {
	log, err := a.sessionLog(r, p)
	if err != nil {
		return nil, err
	}
	f, err := foldLog(r.Context(), a.log, log)
	if err != nil {
		return nil, err
	}
	st := &f.state
	if st.Seq == 0 {
		return nil, fault.New(fault.SessionNotFound)
	}
	d := Detail{
		SessionID: log.Entity.String(), Status: statusOpen, Dialect: st.Dialect, Language: st.Preferences.Language,
		CreatedAt: st.Created, UpdatedAt: st.Updated, LastSeq: st.Seq, Stats: st.Stats(st.Updated), Runs: []RunDetail{},
	}
	if st.Closed {
		d.Status = statusClosed
	}
	for _, run := range st.Runs() {
		d.Runs = append(d.Runs, detail(run))
	}
	return d, nil
}

func detail(r *conversation.Run) RunDetail {
	d := RunDetail{
		RunID: r.ID, ExecutionID: r.ExecutionID, MessageID: r.MessageID, Mode: r.Spec.Mode, Status: string(r.Status),
		Attempt: r.Attempt(), Content: r.Content, Answer: r.Answer, Outcome: r.Outcome,
	}
	if r.Pipeline == nil {
		return d
	}
	d.Stage = string(r.Pipeline.Phase)
	for _, t := range r.Pipeline.Tasks {
		d.Tasks = append(d.Tasks, TaskDetail{
			TaskID: t.ID, Title: t.Title, Status: taskStates[t.State], Attempt: t.Attempt,
			Dependencies: t.Dependencies, Output: t.Output, Error: t.Error,
		})
	}
	return d
}
