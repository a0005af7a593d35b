package api

import (
	"encoding/json"
	"time"
)

// DeadLetterList is a page of the commands that services have given up, the newest first.
type DeadLetterList struct {
	DeadLetters []DeadLetter `json:"dead_letters"`
	Total       int          `json:"total"`          // of the tenant
	Next        string       `json:"next,omitempty"` // the parameter before of the next page
	More        bool         `json:"more,omitempty"` // older ones follow
}

// DeadLetter is a command that a service has given up.
type DeadLetter struct {
	Seq        uint64    `json:"seq"` // names it
	Service    string    `json:"service"`
	Verb       string    `json:"verb"`
	Key        string    `json:"key"`                  // the session, task or team that it concerns
	CommandID  string    `json:"command_id,omitempty"` // absent: the message held no command
	Principal  string    `json:"principal,omitempty"`  // that wanted it; absent: a service
	Reason     string    `json:"reason"`               // of the last attempt
	Deliveries uint64    `json:"deliveries"`           // after so many it was given up
	Time       time.Time `json:"time"`                 // when it was given up
	SentAt     time.Time `json:"sent_at,omitzero"`     // when it was sent
}

// DeadLetterDetail is a dead letter with its command, without signatures.
type DeadLetterDetail struct {
	DeadLetter
	Command json.RawMessage `json:"command"` // as it was queued; a string if it was not JSON
}

// QueueList lists the queues of commands, by the names of their services.
type QueueList struct {
	Queues  []Queue   `json:"queues"`
	Oldest  time.Time `json:"oldest,omitzero"` // when the oldest command of all queues was stored; absent: all are empty
	TakenAt time.Time `json:"taken_at"`        // the figures are of about this time
}

// Queue counts the commands in the queue of a service, those of all tenants.
type Queue struct {
	Service     string `json:"service"`
	Waiting     uint64 `json:"waiting"`     // not delivered yet
	Out         uint64 `json:"out"`         // delivered and not done yet
	Redelivered uint64 `json:"redelivered"` // of these, delivered more than once
}

// QuotaList lists how much of its quotas a tenant uses, the most used ones first.
type QuotaList struct {
	Quotas []Quota `json:"quotas"` // empty: nothing is limited
}

// Quota is how much of a limit the tenant as a whole or one of its principals uses.
type Quota struct {
	Scope     string  `json:"scope"`               // tenant, principal
	Principal string  `json:"principal,omitempty"` // of scope principal
	Resource  string  `json:"resource"`
	Used      float64 `json:"used"` // of cost_usd in dollars, of time in seconds
	Limit     float64 `json:"limit"`
	Daily     bool    `json:"daily,omitempty"` // of a day (UTC)
}

// SettingList lists the configuration that the answering gateway started with. Other processes may have another one.
type SettingList struct {
	Gateway  string    `json:"gateway"` // its instance
	Settings []Setting `json:"settings"`
}

// Setting is a setting in force.
type Setting struct {
	Name   string `json:"name"`   // as in the file
	Value  string `json:"value"`  // secrets are redacted; of lists and tables of sections the number of entries
	Source string `json:"source"` // default, file, environment, flag
}

// AuditPage is a page of the audit records of the tenant, the newest first.
type AuditPage struct {
	Records []AuditRecord `json:"records"`
	Next    string        `json:"next,omitempty"` // the parameter before of the next page
	More    bool          `json:"more,omitempty"` // older ones follow, or may follow if a filter has left the page short
}

// VerifyAudit asks for the next part of a check of the whole audit log.
type VerifyAudit struct {
	Next string `json:"next,omitempty"` // next of the last answer; absent: from the beginning
}

// AuditCheck is what a check of the audit log has found so far: whether a record is missing, was changed or was moved. It covers the
// records of all tenants, because they share chains of hashes.
type AuditCheck struct {
	Records  int          `json:"records"`               // that were checked
	Of       uint64       `json:"of"`                    // records that the log had when the check began
	First    uint64       `json:"first"`                 // place of the oldest record; those before it have expired
	Last     uint64       `json:"last"`                  // place of the record that was the newest when the check began
	Oldest   time.Time    `json:"oldest"`                // time of the oldest record
	Newest   time.Time    `json:"newest"`                // time of that newest record
	Chains   int          `json:"chains"`                // that were found: each process begins one at its start
	Begun    int          `json:"begun"`                 // chains whose beginning has expired
	Unlinked int          `json:"unlinked"`              // records of earlier versions, without a chain
	Lost     int          `json:"lost"`                  // records that were lost before they were stored, as their writers report
	Faults   []AuditFault `json:"faults"`                // the first 100; known in full after the last part
	More     int          `json:"more_faults,omitempty"` // faults that are not listed
	Next     string       `json:"next,omitempty"`        // where the rest begins; absent: all is checked
}

// AuditFault is a place where the audit log is not whole.
type AuditFault struct {
	Seq  uint64 `json:"seq,omitempty"` // place of the record; absent: the fault is of a whole chain
	Text string `json:"text"`
}

// AuditRecord is a record of the audit log. Fields that do not concern the action are absent.
type AuditRecord struct {
	Seq        uint64    `json:"seq"` // its place in the log
	Time       time.Time `json:"time"`
	Action     string    `json:"action"`
	Outcome    string    `json:"outcome"`              // done, sent, denied; of a decision approve, reject, answer; of a call failed, unknown
	Code       string    `json:"code,omitempty"`       // of the fault
	Principal  string    `json:"principal,omitempty"`  // subject, within the tenant
	Remote     string    `json:"remote,omitempty"`     // address, or its keyed hash, as configured
	Source     string    `json:"source"`               // the process that wrote it
	Dialect    string    `json:"dialect,omitempty"`    // of the connection
	Service    string    `json:"service,omitempty"`    // of a command: its service
	Verb       string    `json:"verb,omitempty"`       // of a command; of an API call the method
	Kind       string    `json:"kind,omitempty"`       // of the entity
	Entity     string    `json:"entity,omitempty"`     // session, task, team, agent; of an API call the path
	Command    string    `json:"command,omitempty"`    // id of the command
	Input      string    `json:"input,omitempty"`      // of a decision: id of the question
	Server     string    `json:"server,omitempty"`     // of a call of a tool
	Tool       string    `json:"tool,omitempty"`       // of a call of a tool; in a decision with its server, as models call it
	Call       string    `json:"call,omitempty"`       // id of a model's call of a tool
	Digest     string    `json:"digest,omitempty"`     // of a call of a tool, or of an answer about one: its name and arguments
	Resource   string    `json:"resource,omitempty"`   // of a quota
	Scope      string    `json:"scope,omitempty"`      // of a quota: tenant, principal
	Limit      float64   `json:"limit,omitempty"`      // of cost_usd in dollars, of time in seconds
	Used       float64   `json:"used,omitempty"`       // as limit
	CloseCode  int       `json:"close_code,omitempty"` // of a connection
	DurationMS int64     `json:"duration_ms,omitempty"`
	Count      int64     `json:"count,omitempty"` // of refusals that share the record, or of records that were lost
}
