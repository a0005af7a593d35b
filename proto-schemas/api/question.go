package api

import (
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Values of a question's state.
const (
	QuestionOpen      = "open"
	QuestionAnswered  = "answered"
	QuestionExpired   = "expired"
	QuestionWithdrawn = "withdrawn"
)

// ScopeAgent is the scope of a question that an agent of the swarm asks during a task.
const ScopeAgent = "agent"

// DecisionAnswer is the decision of an answer to an agent of the swarm.
const DecisionAnswer = event.DecisionAnswer

// QuestionList lists questions to people: open ones, the newest first, or those that are over, the newest end first.
type QuestionList struct {
	Questions []Question `json:"questions"`
	Next      string     `json:"next,omitempty"` // the parameter before of the next page
	More      bool       `json:"more,omitempty"` // more questions may follow
}

// Question is a question that a session, a member of a team or a task asks people.
type Question struct {
	ID      string `json:"id"`       // names the question in the tenant: kind.log.input
	InputID string `json:"input_id"` // names it in its log
	State   string `json:"state"`    // open, answered, expired, withdrawn
	Scope   string `json:"scope"`    // plan, tool, client_tool, budget, agent

	Kind  string `json:"kind"`            // of the log: session, member, task
	LogID string `json:"log_id"`          // of the log
	Seq   uint64 `json:"seq"`             // of the event that asks
	Title string `json:"title,omitempty"` // first message of the session, name of the team, type of the task

	Principal string `json:"principal,omitempty"` // owner of the session, founder of the team, client of the task
	TeamID    string `json:"team_id,omitempty"`   // the outermost team of the asking member
	Asker     string `json:"asker,omitempty"`     // the asking member's path from that team, or the agent's name

	RunID       string `json:"run_id,omitempty"`
	ExecutionID string `json:"execution_id,omitempty"`

	CallID      string          `json:"call_id,omitempty"` // of scope tool and client_tool
	Tool        string          `json:"tool,omitempty"`
	Description string          `json:"description,omitempty"` // of the tool
	Arguments   json.RawMessage `json:"arguments,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // JSON Schema of the arguments: the answer may change them; absent: it may not
	Digest      string          `json:"digest,omitempty"`     // of scope tool: of exactly these arguments; the answer repeats it

	PlanID  string           `json:"plan_id,omitempty"` // of scope plan
	Steps   []event.Step     `json:"steps,omitempty"`
	Summary string           `json:"summary,omitempty"`
	Budget  *event.BudgetUse `json:"budget,omitempty"` // of scope budget

	MessageType string          `json:"message_type,omitempty"` // of scope agent
	Message     json.RawMessage `json:"message,omitempty"`
	Options     json.RawMessage `json:"options,omitempty"`

	Cut bool `json:"cut,omitempty"` // too large for the list: the event at seq has the contents

	AskedAt    time.Time `json:"asked_at"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"`   // absent: it does not expire
	AnsweredBy string    `json:"answered_by,omitempty"` // principal, or client of the swarm
	AnsweredOn string    `json:"answered_on,omitempty"` // device
	Decision   string    `json:"decision,omitempty"`    // approve, modify, reject, answer
	EndedAt    time.Time `json:"ended_at,omitzero"`     // answered, expired or withdrawn then
}

// QuestionAnswer is an answer to a question. The first one counts.
type QuestionAnswer struct {
	ID       string `json:"id,omitempty"` // the client's id for it: a repeat has the same and gets the same response
	Decision string `json:"decision"`     // approve, modify, reject; of scope agent: answer
	Feedback string `json:"feedback,omitempty"`
	Digest   string `json:"digest,omitempty"`    // of the question that the person has seen; another one is refused
	ClientID string `json:"client_id,omitempty"` // the answering device

	Steps         json.RawMessage `json:"steps,omitempty"`          // modify: the list of steps in place of the plan's
	ModifiedSteps json.RawMessage `json:"modified_steps,omitempty"` // modify: changed members of steps with the same ids
	Arguments     json.RawMessage `json:"arguments,omitempty"`      // modify, of scope tool: what the call runs with, checked against the question's parameters
	Result        *string         `json:"result,omitempty"`         // approve, of scope client_tool: what the tool has returned
	Message       json.RawMessage `json:"message,omitempty"`        // answer, of scope agent: any JSON, for the agent
}

// QuestionOutcome is the answer that counts, which is that of the request.
type QuestionOutcome struct {
	ID         string `json:"id"`       // of the question
	InputID    string `json:"input_id"` // of the question in its log
	Decision   string `json:"decision"` // approve, modify, reject, answer
	AnsweredBy string `json:"answered_by,omitempty"`
	AnsweredOn string `json:"answered_on,omitempty"`
	RunID      string `json:"run_id,omitempty"`
	Seq        uint64 `json:"seq"` // of the event in the log; 0: it has expired
	CommandID  string `json:"command_id"`
}
