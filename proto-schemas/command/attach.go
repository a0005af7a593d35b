package command

import (
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// AttachRequest asks for the position from which a client of a session should read. At most one of After, EventID and
// Live is set; without any it is the client's last ack, or the beginning of the log if the client has none.
type AttachRequest struct {
	Tenant    id.Tenant `json:"tenant"`
	Session   id.Entity `json:"session"`
	Principal string    `json:"principal,omitempty"`
	All       bool      `json:"all,omitempty"`      // the principal sees every session of the tenant
	After     *uint64   `json:"after,omitempty"`    // the highest seq that it has
	EventID   string    `json:"event_id,omitempty"` // the event_id that it saw last, a cursor: <seq> or <seq>.<stream seq>
	Live      bool      `json:"live,omitempty"`     // only events from now on
	ClientID  string    `json:"client_id,omitempty"`
	Hash      string    `json:"hash,omitempty"` // of the state that the client has
}

// AttachReply names the position. A session that is unknown, over or owned by another principal is the fault
// SESSION_EXPIRED instead, and a position beyond the newest event CURSOR_INVALID.
type AttachReply struct {
	After       string                   `json:"after"`                  // cursor: the client gets the events after it
	Head        uint64                   `json:"head"`                   // seq of the newest event
	Language    string                   `json:"language"`               // of the session
	FirstSeq    uint64                   `json:"first_seq,omitempty"`    // the oldest remaining seq, if earlier wanted events have expired
	Exported    *event.StateExportedData `json:"exported,omitempty"`     // with FirstSeq: the state that replaces the expired events
	HashMatched *bool                    `json:"hash_matched,omitempty"` // with Hash
}

// ExportRequest asks for the state of a session.
type ExportRequest struct {
	Tenant     id.Tenant `json:"tenant"`
	Session    id.Entity `json:"session"`
	Principal  string    `json:"principal,omitempty"`
	All        bool      `json:"all,omitempty"`         // the principal sees every session of the tenant
	History    bool      `json:"history,omitempty"`     // with the newest events
	MaxHistory int       `json:"max_history,omitempty"` // how many; 0 = 100
}

// SessionRequest asks for a session and its runs.
type SessionRequest struct {
	Tenant    id.Tenant `json:"tenant"`
	Session   id.Entity `json:"session"`
	Principal string    `json:"principal,omitempty"`
	All       bool      `json:"all,omitempty"`   // the principal sees every session of the tenant
	Skip      int       `json:"skip,omitempty"`  // how many of the oldest runs the caller has whole
	Steps     int       `json:"steps,omitempty"` // how many steps of the run after those it has
}

// ImportRequest restores a session from a signed state. The faults are
// STATE_TAMPERED and STATE_EXPIRED.
type ImportRequest struct {
	Tenant    id.Tenant       `json:"tenant"`
	Principal string          `json:"principal,omitempty"`
	All       bool            `json:"all,omitempty"` // the principal is an operator, who may restore sessions of others
	Signed    json.RawMessage `json:"signed"`

	ID        string    `json:"id,omitempty"`
	Time      time.Time `json:"time,omitzero"`
	Signature string    `json:"signature,omitempty"` // of the gateway: that of Command
}

// Command returns the request as the command that its signature covers.
func (r ImportRequest) Command() Command {
	return Command{
		ID: r.ID, Service: Session, Verb: Import, Tenant: r.Tenant, Principal: r.Principal, Operator: r.All, Time: r.Time, Data: r.Signed, Signature: r.Signature,
	}
}

// ImportReply names the session, which keeps the id of its export. Restored is true when a restore, this one or an
// earlier one, wrote the state of its log: positions from the session's earlier log are invalid in it. Restored is
// false when the session exists and its own log is newer: then that log counts and the import changed nothing.
type ImportReply struct {
	Session  id.Entity `json:"session"`
	Restored bool      `json:"restored"`

	Exported *Exported `json:"exported,omitempty"` // summary of the signed state
}

// Exported summarises a signed state.
type Exported struct {
	At           time.Time `json:"at"`
	Seq          uint64    `json:"seq"`   // of the newest event in it
	Stage        string    `json:"stage"` // planning, confirmation, solving, aggregation, idle
	MessageCount int       `json:"message_count"`
}
