// Package audit is the form of the audit log. A record names principals, entities and outcomes. It never holds
// contents of messages, and never a secret.
package audit

import (
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// The actions: the last token of a record's subject.
var (
	Connected    = id.MustName("connection-accepted")
	Refused      = id.MustName("connection-refused")
	Closed       = id.MustName("connection-closed")
	AuthFailed   = id.MustName("authentication-failed")
	Command      = id.MustName("command")   // that changes something: the attempt (sent), and its refusal
	Decided      = id.MustName("decision")  // an answer to a question: the one that counts, and refused ones
	ToolCalled   = id.MustName("tool-call") // of a model, at its end
	Exported     = id.MustName("export")
	Imported     = id.MustName("import")
	QuotaRefused = id.MustName("quota-refused")
	Deleted      = id.MustName("deletion") // of what Kind and Entity name: its log is removed
	API          = id.MustName("api-call")
	// Lost means that records were dropped because they came faster than they could be written. Count is their number.
	Lost = id.MustName("records-lost")
)

// Actions lists all actions but Lost.
var Actions = []id.Name{Connected, Refused, Closed, AuthFailed, Command, Decided, ToolCalled, Exported, Imported, QuotaRefused, Deleted, API}

// The resources that quotas limit, as records and keys of the ledger name them.
var (
	Connections = id.MustName("connections") // open at once
	Messages    = id.MustName("messages")    // a second
	Sessions    = id.MustName("sessions")    // open at once
	Tasks       = id.MustName("tasks")       // of the swarm, open at once
	Teams       = id.MustName("teams")       // open at once
	Tokens      = id.MustName("tokens")      // a day
	CostUSD     = id.MustName("cost_usd")    // a day
	ToolCalls   = id.MustName("tool_calls")  // a day
	Time        = id.MustName("time")        // for which workers work, a day

	WorkspaceBytes = id.MustName("workspace_bytes") // of files in a tenant's part of the workspace
	Children       = id.MustName("children")        // of a task of a client, with those of its children
)

// Held lists the resources of which the ledger keeps holdings.
var Held = []id.Name{Connections, Sessions, Tasks, Children, Teams, Tokens, CostUSD, ToolCalls, Time}

// Outcomes.
const (
	Done     = "done"
	Sent     = "sent"   // to a service, which records it if the command has no effect
	Denied   = "denied" // it had no effect; Code has the reason
	Approve  = "approve"
	Reject   = "reject"
	Answered = "answer"  // to an agent that asked
	Failed   = "failed"  // of a call of a tool
	Unknown  = "unknown" // of a call of a tool: it may or may not have had its effect
)

// Record is one entry. Fields that do not concern the action are absent.
type Record struct {
	ID         string    `json:"id"` // unique; the message's Nats-Msg-Id too
	Time       time.Time `json:"time"`
	Action     string    `json:"action"`
	Outcome    string    `json:"outcome"`              // done, sent, denied; of a decision approve, reject, answer; of a call failed, unknown
	Code       string    `json:"code,omitempty"`       // of the fault
	Tenant     string    `json:"tenant,omitempty"`     // absent: unknown
	Principal  string    `json:"principal,omitempty"`  // subject, within the tenant
	Roles      []string  `json:"roles,omitempty"`      // of the principal
	Remote     string    `json:"remote,omitempty"`     // address, or its keyed hash, as configured
	Source     string    `json:"source"`               // the process that wrote it: waggle/<role>/<instance>
	Connection string    `json:"connection,omitempty"` // names a socket of the source
	Dialect    string    `json:"dialect,omitempty"`
	Service    string    `json:"service,omitempty"` // of a command: its service
	Verb       string    `json:"verb,omitempty"`    // of a command; of an API call the method
	Kind       string    `json:"kind,omitempty"`    // of the entity
	Entity     string    `json:"entity,omitempty"`  // session, task, team, agent; of an API call the path
	Command    string    `json:"command,omitempty"` // id of the command
	Input      string    `json:"input,omitempty"`   // of a decision: id of the question
	Resource   string    `json:"resource,omitempty"`
	Scope      string    `json:"scope,omitempty"` // of a quota: tenant, principal
	Limit      float64   `json:"limit,omitempty"` // of cost_usd in dollars, of time in seconds
	Used       float64   `json:"used,omitempty"`
	CloseCode  int       `json:"close_code,omitempty"`
	DurationMS int64     `json:"duration_ms,omitempty"`
	Server     string    `json:"server,omitempty"`  // of a call of a tool
	Tool       string    `json:"tool,omitempty"`    // in a decision with its server, as models call it: server_tool
	Call       string    `json:"call,omitempty"`    // id of a model's call of a tool
	Digest     string    `json:"digest,omitempty"`  // of a call of a tool, or of an answer about one: its name and arguments
	Count      int64     `json:"count,omitempty"`   // of records-lost: how many
	Numbers    []int64   `json:"numbers,omitempty"` // of records-lost: those that have a place in the chain

	// The chain of the writer: a process that starts begins another one.
	Chain    string `json:"chain,omitempty"`
	Number   int64  `json:"number,omitempty"`   // in the chain: 1, 2, 3, ...
	Previous string `json:"previous,omitempty"` // SHA-256 of the stored form of the one before, in hex
	After    uint64 `json:"after,omitempty"`    // of number 1: sequence of the newest record of the log at that time
}
