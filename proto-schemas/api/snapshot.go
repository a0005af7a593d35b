package api

import (
	"encoding/json"
	"time"
)

// Snapshot is what a log has said up to one of its events, as people are shown it. Its JSON is canonical (RFC 8785), so that
// two snapshots say the same if they have the same bytes.
type Snapshot struct {
	Kind string    `json:"kind"` // session, member, team, task
	ID   string    `json:"id"`
	Base uint64    `json:"base"` // seq of the first event that it is made of: nothing before it matters for the end of it
	Seq  uint64    `json:"seq"`  // of the last one
	Type string    `json:"type"` // of the last one
	Time time.Time `json:"time"` // of the last one

	Conversation *SnapshotTalk `json:"conversation,omitempty"` // of a session or a member
	Team         *SnapshotTeam `json:"team,omitempty"`
	Task         *SnapshotTask `json:"task,omitempty"`
	Bars         []SnapshotBar `json:"bars,omitzero"` // of a session, a member or a task: what took a time, as begun
	Until        int64         `json:"until"`         // time of the newest event in milliseconds since 1970
}

// SnapshotTalk is a conversation.
type SnapshotTalk struct {
	Items     []SnapshotItem     `json:"items"`     // as begun
	Questions []SnapshotQuestion `json:"questions"` // open ones, as asked
	Active    []string           `json:"active"`    // runs that have not ended, as accepted
}

// SnapshotItem is one thing in a conversation. Its kind says which members it has.
type SnapshotItem struct {
	Kind      string          `json:"kind"` // user, answer, tool, plan, decision, retry, notice, end
	ID        string          `json:"id"`
	Run       string          `json:"run"`
	Text      *string         `json:"text,omitempty"`      // of all but a plan: what was said or returned; of a decision: the reason that was given
	Done      *bool           `json:"done,omitempty"`      // of an answer: it is whole
	Step      string          `json:"step,omitempty"`      // of an answer or a tool: the step that it belongs to
	Name      *string         `json:"name,omitempty"`      // of a tool; of a decision: the tool that was asked about
	Arguments json.RawMessage `json:"arguments,omitempty"` // of a tool
	Status    string          `json:"status,omitempty"`    // of a tool: called, running, completed, failed, unknown; of a plan: waiting, running, done, cancelled
	Summary   *string         `json:"summary,omitempty"`   // of a plan
	Steps     []SnapshotStep  `json:"steps,omitzero"`      // of a plan
	Code      *string         `json:"code,omitempty"`      // of an end, a retry or a notice; of a decision: approve, modify, reject, answer, expired, withdrawn

	Reasoning string           `json:"reasoning,omitempty"` // of an answer: the thoughts of the model before and between its text
	Thought   *SnapshotThought `json:"thought,omitempty"`   // of an answer with reasoning: when
	Stop      *SnapshotStop    `json:"stop,omitempty"`      // of an answer that is not complete: why

	Try   int    `json:"try,omitempty"`   // of a retry: the one that failed
	Tries int    `json:"tries,omitempty"` // of a retry: all of them
	Pause int64  `json:"pause,omitempty"` // of a retry: milliseconds before the next try
	At    int64  `json:"at,omitempty"`    // of a retry: when the last try failed; of a decision: when it was made; in milliseconds since 1970
	Model string `json:"model,omitempty"` // of a retry: the model that is asked next, if it is another one

	By    string `json:"by,omitempty"`    // of a decision: who made it
	Scope string `json:"scope,omitempty"` // of a decision: what the question was about: plan, tool, budget, agent
}

// SnapshotThought is the time in which a model thought, in milliseconds since 1970.
type SnapshotThought struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// SnapshotStop is why an answer is not complete.
type SnapshotStop struct {
	Reason string `json:"reason"`           // length, filtered, refused, other, stopped
	Detail string `json:"detail,omitempty"` // other: the provider's word for it
}

// SnapshotStep is a step of a plan.
type SnapshotStep struct {
	ID           string   `json:"id"`
	Title        string   `json:"title"`
	Dependencies []string `json:"dependencies"`
	Status       string   `json:"status"` // waiting, running, completed, failed, cancelled
	Text         string   `json:"text"`   // its result, why it failed, or why it was skipped: user_request, dependency_failed, timeout
}

// SnapshotQuestion is an open question.
type SnapshotQuestion struct {
	Type string          `json:"type"`           // of the event that asks: input.requested, task.asked
	Data json.RawMessage `json:"data"`           // of that event
	Ends string          `json:"ends,omitempty"` // when it expires (RFC 3339, milliseconds)
}

// SnapshotBar is something that took a time.
type SnapshotBar struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"` // run, queue, job, model, tool, people, pause, step
	Run   string `json:"run"`
	Name  string `json:"name"`
	From  int64  `json:"from"`         // milliseconds since 1970
	To    *int64 `json:"to,omitempty"` // absent: it has not ended
	State string `json:"state"`        // running, completed, failed, cancelled, unknown, waiting

	Job    string `json:"job,omitempty"`    // that it belongs to
	Reason string `json:"reason,omitempty"` // of one that has failed: a code of the error catalogue

	Seq uint64 `json:"seq"`           // of the event that began it
	End uint64 `json:"end,omitempty"` // of the event that ended it
}

// SnapshotTeam is a team with its nested teams. A route is a path of member names; a side is people, board, or @ and a route.
type SnapshotTeam struct {
	Name     string              `json:"name"`
	Status   string              `json:"status"`
	Closed   bool                `json:"closed"`
	Members  []SnapshotMember    `json:"members"`  // each team stands before its members
	Tasks    []SnapshotBoardTask `json:"tasks"`    // on the boards
	Messages []SnapshotSaid      `json:"messages"` // all that was said, as begun
	Arrows   []SnapshotArrow     `json:"arrows"`   // messages between members, as accepted
	Sides    []string            `json:"sides"`    // those that they go between, as they first did
}

// SnapshotMember is a member of a team.
type SnapshotMember struct {
	Route  string `json:"route"`
	Name   string `json:"name"`
	Kind   string `json:"kind"` // agent, team
	Role   string `json:"role"`
	Status string `json:"status"` // empty: it has not begun

	Conversation *SnapshotTalk `json:"conversation,omitempty"`
	Suspended    []string      `json:"suspended,omitzero"` // questions that its job waits for
}

// SnapshotBoardTask is a task on the board of a team.
type SnapshotBoardTask struct {
	Team     string   `json:"team"` // route of the team that has the board; empty: the team itself
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	About    string   `json:"about"`
	Assignee string   `json:"assignee"` // route
	Needs    []string `json:"needs"`    // ids of the tasks of the same board that come first
	Status   string   `json:"status"`
	Seq      uint64   `json:"seq"` // of the event that changed it last
}

// SnapshotSaid is what one said in a team.
type SnapshotSaid struct {
	ID   string `json:"id"`
	From string `json:"from"`         // route of a member, or the name of a sender; empty: people, or the board of tasks
	To   string `json:"to,omitempty"` // route of the receiver of a message
	Text string `json:"text"`
	Done bool   `json:"done"`

	Board     bool          `json:"board,omitempty"`     // the board of tasks has sent it
	Reasoning string        `json:"reasoning,omitempty"` // the thoughts of a model before and between its text
	Stop      *SnapshotStop `json:"stop,omitempty"`      // of a text that is not complete: why
}

// SnapshotArrow is a message on its way between two sides.
type SnapshotArrow struct {
	ID      string           `json:"id"`
	Seq     uint64           `json:"seq"`  // of the event that accepted it
	Time    time.Time        `json:"time"` // of that event
	From    string           `json:"from"` // side
	To      string           `json:"to"`   // side
	Text    string           `json:"text"` // its first 300 characters
	Handed  bool             `json:"handed"`
	Dropped *SnapshotDropped `json:"dropped,omitempty"`
}

// SnapshotDropped says why a message did not reach its receiver.
type SnapshotDropped struct {
	Seq    uint64 `json:"seq"`
	Reason string `json:"reason"`
}

// SnapshotTask is a task of the swarm.
type SnapshotTask struct {
	Type      string             `json:"type"`
	Wanted    string             `json:"wanted"` // the requested agent, or the capabilities
	Input     json.RawMessage    `json:"input,omitempty"`
	RetryOf   string             `json:"retry_of"`
	Parent    string             `json:"parent"`
	Session   string             `json:"session"` // the log whose job it is
	Kind      string             `json:"kind"`    // of that log
	Status    string             `json:"status"`
	Queued    string             `json:"queued"` // why it waits for an agent
	Principal string             `json:"principal"`
	Attempts  []SnapshotAttempt  `json:"attempts"`
	Calls     []SnapshotTaskCall `json:"calls"`
	Children  []SnapshotChild    `json:"children"`
	Questions []SnapshotAsking   `json:"questions"`
	Notes     []SnapshotNote     `json:"notes"` // the newest 50
	Result    json.RawMessage    `json:"result,omitempty"`
	Code      string             `json:"code"`
	Error     string             `json:"error"`
	Created   string             `json:"created"` // RFC 3339; empty: not yet
	Ended     string             `json:"ended"`   // RFC 3339; empty: not yet
}

// SnapshotAttempt is one agent's hold of a task.
type SnapshotAttempt struct {
	N       int    `json:"n"`
	Agent   string `json:"agent"`
	From    string `json:"from"`         // RFC 3339
	To      string `json:"to,omitempty"` // RFC 3339
	Says    string `json:"says"`         // its state, as the agent said last
	End     string `json:"end"`          // the status of the task, or why the agent lost it
	Lost    bool   `json:"lost"`
	Refused int    `json:"refused"` // reports that came too late
	Seq     uint64 `json:"seq"`
}

// SnapshotTaskCall is a call of a tool within a task.
type SnapshotTaskCall struct {
	ID       string `json:"id"`
	Tool     string `json:"tool"`
	Provider string `json:"provider"`
	Status   string `json:"status"` // running, completed, failed, unknown
	Error    string `json:"error"`
	MS       *int64 `json:"ms,omitempty"` // how long it took
	Seq      uint64 `json:"seq"`
}

// SnapshotChild is a task that the agent gave to another one.
type SnapshotChild struct {
	ID     string `json:"id"`
	Agent  string `json:"agent"`
	Type   string `json:"type"`
	Status string `json:"status"`
	Seq    uint64 `json:"seq"`
}

// SnapshotAsking is a question of the agent of a task.
type SnapshotAsking struct {
	ID      string          `json:"id"`
	Message json.RawMessage `json:"message,omitempty"`
	State   string          `json:"state"` // waiting, answered, expired
	Answer  json.RawMessage `json:"answer,omitempty"`
	By      string          `json:"by"`
	Seq     uint64          `json:"seq"`
}

// SnapshotNote is a notification of the agent of a task.
type SnapshotNote struct {
	At   string `json:"at"` // RFC 3339
	Text string `json:"text"`
	Seq  uint64 `json:"seq"`
}
