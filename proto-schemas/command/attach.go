package command

import (
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// AttachRequest asks where a client that comes to a session stands. At most one
// of After, EventID and Live is set; without any it is the client's last ack, or
// the beginning of the log if it has none.
type AttachRequest struct {
	Tenant    id.Tenant `json:"tenant"`
	Session   id.Entity `json:"session"`
	Principal string    `json:"principal,omitempty"`
	After     *uint64   `json:"after,omitempty"`    // the highest seq that it has
	EventID   string    `json:"event_id,omitempty"` // the event_id that it saw last, a cursor: <seq> or <seq>.<stream seq>
	Live      bool      `json:"live,omitempty"`     // only what comes from now on
	ClientID  string    `json:"client_id,omitempty"`
	Hash      string    `json:"hash,omitempty"` // of the state as the client knows it
}

// AttachReply says where to begin. A session that is unknown, over or somebody
// else's is the fault SESSION_EXPIRED instead, and a position beyond the newest
// event CURSOR_INVALID.
type AttachReply struct {
	After       string                   `json:"after"`                  // cursor: events after it are to be shown
	Head        uint64                   `json:"head"`                   // seq of the newest event
	Language    string                   `json:"language"`               // of the session
	FirstSeq    uint64                   `json:"first_seq,omitempty"`    // the head of what was asked for has expired: the first that is left
	Exported    *event.StateExportedData `json:"exported,omitempty"`     // with FirstSeq: the state, for what cannot be shown
	HashMatched *bool                    `json:"hash_matched,omitempty"` // with Hash
}

// ExportRequest asks for the state of a session.
type ExportRequest struct {
	Tenant     id.Tenant `json:"tenant"`
	Session    id.Entity `json:"session"`
	Principal  string    `json:"principal,omitempty"`
	History    bool      `json:"history,omitempty"`     // with the newest events
	MaxHistory int       `json:"max_history,omitempty"` // how many; 0 = 100
}

// ImportRequest restores a session from a signed state. The faults are
// STATE_TAMPERED and STATE_EXPIRED.
type ImportRequest struct {
	Tenant    id.Tenant       `json:"tenant"`
	Principal string          `json:"principal,omitempty"`
	Signed    json.RawMessage `json:"signed"`
}

// ImportReply names the session, which keeps the id it was exported under.
// Restored is true when its log has the state from a restore, this one or an earlier
// one: a position that the client has from the session's former life is none in it.
// It is false when the session is there and knows more by itself: then its own log
// counts and nothing was changed.
type ImportReply struct {
	Session  id.Entity `json:"session"`
	Restored bool      `json:"restored"`

	Exported *Exported `json:"exported,omitempty"` // what the signed state says of itself
}

// Exported is what a signed state says of itself.
type Exported struct {
	At           time.Time `json:"at"`
	Seq          uint64    `json:"seq"`   // of the newest event in it
	Stage        string    `json:"stage"` // planning, confirmation, solving, aggregation, idle
	MessageCount int       `json:"message_count"`
}
