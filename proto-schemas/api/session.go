package api

import (
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Values of a session's status.
const (
	SessionOpen   = "open"
	SessionClosed = "closed"
)

// Values of a session's state: what it does now, or how its last run ended.
const (
	SessionIdle      = "idle" // no run yet
	SessionRunning   = "running"
	SessionWaiting   = "waiting" // for people
	SessionCompleted = "completed"
	SessionPartly    = "partly" // some steps of the plan failed or were left out
	SessionFailed    = "failed"
	SessionCancelled = "cancelled"
	SessionUnknown   = "unknown_outcome" // a call of a tool may or may not have had its effect
)

// SessionStates are all states. As a filter, SessionIdle stands for every session without a run under way.
func SessionStates() []string {
	return []string{
		SessionIdle, SessionRunning, SessionWaiting, SessionCompleted, SessionPartly, SessionFailed, SessionCancelled, SessionUnknown,
	}
}

// RunState returns how a run ended that has this status and outcome. The status of a run that has not ended is its state.
func RunState(status, outcome string) string {
	if status != SessionCompleted {
		return status
	}
	switch outcome {
	case "partial_success":
		return SessionPartly
	case "rejected", "cancelled":
		return SessionCancelled
	case "timeout", "failed":
		return SessionFailed
	}
	return SessionCompleted
}

// SessionList lists sessions, the newest change first.
type SessionList struct {
	Sessions []SessionSummary `json:"sessions"`
	Next     string           `json:"next,omitempty"` // the parameter before of the next page
	More     bool             `json:"more,omitempty"` // more sessions may follow
	// Searched is the number of sessions that a filter was held against for this page, the newest ones before it.
	Searched int `json:"searched,omitempty"`
	// Total is the number of sessions of the tenant, whatever the filters. It may be a second old, and with 25,000 sessions or more a
	// minute. It is absent for a principal that does not see all.
	Total *int `json:"total,omitempty"`
}

// SessionSummary is one session in a list.
type SessionSummary struct {
	SessionID string    `json:"session_id"`
	Status    string    `json:"status"`     // open, closed
	LastSeq   uint64    `json:"last_seq"`   // of the newest event, as of the last change of the other members
	LastEvent string    `json:"last_event"` // type of that event
	UpdatedAt time.Time `json:"updated_at"`
	Question  string    `json:"question,omitempty"`  // beginning of the first message
	State     string    `json:"state,omitempty"`     // running, waiting (for people), or how its last run ended: see SessionStates
	Dialect   string    `json:"dialect,omitempty"`   // of the connection that opened it
	Principal string    `json:"principal,omitempty"` // that opened it
	CreatedAt time.Time `json:"created_at,omitzero"`
	Runs      int       `json:"runs,omitempty"` // number of runs

	Model      string   `json:"model,omitempty"`         // that answered last
	Agent      string   `json:"agent,omitempty"`         // of the swarm that ran the last job; absent = a worker did
	DurationMS int64    `json:"duration_ms,omitempty"`   // sum over the runs that have ended, in milliseconds
	Tokens     int64    `json:"tokens,omitempty"`        // of these runs, input and output
	Input      int64    `json:"input_tokens,omitempty"`  // of these tokens; absent = unknown
	Cached     int64    `json:"cached_tokens,omitempty"` // of the input: read from a provider's cache; absent = none, or unknown
	CostUSD    *float64 `json:"cost_usd,omitempty"`      // of these runs; absent = a model has no price
}

// SessionCounts is the number of sessions in each state, of those that changed last.
type SessionCounts struct {
	States   []StateCount `json:"states"`   // all that have sessions, in the order of SessionStates
	Searched int          `json:"searched"` // sessions that were looked at, the newest change first
	More     bool         `json:"more"`     // older ones were not looked at
}

// StateCount is the number of sessions in a state.
type StateCount struct {
	State    string `json:"state"`
	Sessions int    `json:"sessions"`
}

// SessionDetail is one session with its runs.
type SessionDetail struct {
	SessionID string      `json:"session_id"`
	Status    string      `json:"status"` // open, closed
	Dialect   string      `json:"dialect"`
	Language  string      `json:"language,omitempty"`
	CreatedAt time.Time   `json:"created_at"`
	UpdatedAt time.Time   `json:"updated_at"`
	LastSeq   uint64      `json:"last_seq"` // of the newest event
	Stats     event.Stats `json:"stats"`
	Runs      []RunDetail `json:"runs"` // oldest first
}

// RunDetail is one run of a session. Stage, outcome and tasks belong to planned runs.
type RunDetail struct {
	RunID       string       `json:"run_id"`
	ExecutionID string       `json:"execution_id,omitempty"`
	MessageID   string       `json:"message_id"`
	Mode        string       `json:"mode,omitempty"` // absent (chat), plan, steps
	Status      string       `json:"status"`
	Attempt     int          `json:"attempt"`
	Content     string       `json:"content"` // of the message
	Answer      string       `json:"answer,omitempty"`
	Stage       string       `json:"stage,omitempty"` // planning, confirmation, solving, aggregation, done
	Outcome     string       `json:"outcome,omitempty"`
	Steps       []StepDetail `json:"steps,omitempty"` // of the plan
}

// StepDetail is one step of a run.
type StepDetail struct {
	StepID       string   `json:"step_id"`
	Title        string   `json:"title"`
	Status       string   `json:"status"` // waiting, running, completed, failed, cancelled
	Attempt      int      `json:"attempt"`
	Dependencies []string `json:"dependencies,omitempty"` // ids of steps
	Output       string   `json:"output,omitempty"`
	Error        string   `json:"error,omitempty"`
}

// SessionPart is the session service's answer about a session: as many runs as fit into a message of the bus.
type SessionPart struct {
	SessionDetail
	More bool `json:"more,omitempty"` // more follows
	Cut  bool `json:"cut,omitempty"`  // more steps of the last run follow
}

// Take adds the answer to a request for what follows d, whose last run is cut if the answer before said so.
func (d *SessionDetail) Take(part SessionPart, cut bool) {
	runs, more := d.Runs, part.Runs
	if cut && len(runs) > 0 && len(more) > 0 {
		steps := append(runs[len(runs)-1].Steps, more[0].Steps...)
		runs[len(runs)-1] = more[0]
		runs[len(runs)-1].Steps, more = steps, more[1:]
	}
	*d = part.SessionDetail
	d.Runs = append(runs, more...)
}

// EventPage is a page of a log.
type EventPage struct {
	Events []json.RawMessage `json:"events"` // canonical events (schema event), oldest first
	Next   string            `json:"next"`   // cursor of the last event: the parameter after of the next page
	More   bool              `json:"more"`   // more events follow
}

// NewSession asks for a session. All members are optional.
type NewSession struct {
	SessionID   string `json:"session_id,omitempty"`   // the client's, at most 1024 bytes: creates the session at once, and a repeat has the same response; absent = a new id, and the first message creates the session
	Language    string `json:"language,omitempty"`     // of texts for people, like en_US
	ConfirmPlan *bool  `json:"confirm_plan,omitempty"` // people confirm plans
	OnBusy      string `json:"on_busy,omitempty"`      // reject, enqueue, interrupt
}

// SessionName is the id of a session. A token stands for an id of the client's that has other characters than letters, digits, _ and -.
type SessionName struct {
	SessionID string `json:"session_id"`
}

// NewMessage is a message to a session.
type NewMessage struct {
	ID      string       `json:"id,omitempty"` // the client's id for it: a repeat has the same and gets the same response
	Content string       `json:"content,omitempty"`
	Mode    string       `json:"mode,omitempty"`  // absent or chat, plan, steps
	Steps   []event.Step `json:"steps,omitempty"` // mode steps: the steps to solve
	Agent   string       `json:"agent,omitempty"` // mode chat: the agent of the swarm, by name, that answers; absent = the model

	Files   []MessageFile      `json:"files,omitempty"`   // 128 KiB together, of which 64 KiB may be text
	Context []event.Fact       `json:"context,omitempty"` // for the model, before the message
	Tools   []event.ClientTool `json:"tools,omitempty"`   // tools that the client carries out: the model may call them

	CreateSession bool   `json:"create_session,omitempty"` // create the session under this id if it does not exist
	Language      string `json:"language,omitempty"`       // of texts for people, like en_US, in a session that the message creates
	RunOptions
	event.Attachments
}

// MessageFile is a file that a message brings along. Models see PNG, JPEG, GIF and WebP, and read text; files of other types are stored
// for people and agents only.
type MessageFile struct {
	MediaType string `json:"media_type"` // any, such as image/png; texts (text/*, JSON, XML, YAML) are UTF-8
	Name      string `json:"name,omitempty"`
	Data      string `json:"data"` // the contents in base64, with padding
}

// RunOptions say how a run is carried out.
type RunOptions struct {
	ConfirmPlan    *bool         `json:"confirm_plan,omitempty"`    // absent = the session's setting
	OnBusy         string        `json:"on_busy,omitempty"`         // reject, enqueue, interrupt; absent = the session's setting
	MaxConcurrent  int           `json:"max_concurrent,omitempty"`  // steps at once; absent = the server's limit
	TimeoutSeconds int           `json:"timeout_seconds,omitempty"` // of one try at a step; absent = the server's limit
	ClientID       string        `json:"client_id,omitempty"`       // the sending device
	Budget         *event.Budget `json:"budget,omitempty"`          // limit of its resources; lower limits of the server apply
}

// StepAction is the optional body of a request about a step.
type StepAction struct {
	ID          string `json:"id,omitempty"` // the client's id for it: a repeat has the same and gets the same response
	Reason      string `json:"reason,omitempty"`
	MaxAttempts int    `json:"max_attempts,omitempty"` // restart: absent = the server's limit
}

// CancelSession is the optional body of a request to cancel a run.
type CancelSession struct {
	RunID  string `json:"run_id,omitempty"` // absent = the active run, whichever it is; another one that has ended stays as it is
	Reason string `json:"reason,omitempty"`
}

// CancelPlan is the optional body of a request to give up a plan.
type CancelPlan struct {
	ID     string `json:"id,omitempty"` // the client's id for it: a repeat has the same and gets the same response
	Reason string `json:"reason,omitempty"`
}

// NewPlan is the optional body of a request for another plan.
type NewPlan struct {
	ID       string `json:"id,omitempty"`       // the client's id for it: a repeat has the same and gets the same response
	Question string `json:"question,omitempty"` // absent = the previous one
	RunOptions
}
