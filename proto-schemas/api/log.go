package api

import (
	"encoding/json"
	"time"
)

// LogHead is the extent of a log.
type LogHead struct {
	Kind      string    `json:"kind"` // session, member, team, task, call
	ID        string    `json:"id"`
	First     uint64    `json:"first"` // seq of the oldest event that has not expired
	Last      uint64    `json:"last"`  // seq of the newest event
	LastType  string    `json:"last_type"`
	UpdatedAt time.Time `json:"updated_at"` // of the newest event
}

// LogPage is a page of a log.
type LogPage struct {
	Events  []json.RawMessage `json:"events"`            // canonical events (schema event), oldest first
	Next    string            `json:"next,omitempty"`    // the parameter after, or before, of the next page in the direction of the request
	More    bool              `json:"more"`              // more events follow in that direction
	Expired uint64            `json:"expired,omitempty"` // events up to this seq have expired
}

// FramePage is a page of a log as clients of a protocol read it.
type FramePage struct {
	Protocol string        `json:"protocol"`
	Events   []EventFrames `json:"events"`            // oldest first
	Next     string        `json:"next,omitempty"`    // the parameter after of the next page
	More     bool          `json:"more"`              // more events follow
	Expired  uint64        `json:"expired,omitempty"` // events up to this seq have expired
}

// EventFrames are the frames of one event, without those that a connection adds: greetings, heartbeats, acknowledgements.
type EventFrames struct {
	Seq    uint64            `json:"seq"`
	Type   string            `json:"type"`
	Frames []json.RawMessage `json:"frames"` // in order; empty: the protocol says nothing of the event
}

// Me is the principal of the request.
type Me struct {
	Subject string    `json:"subject"`
	Tenant  string    `json:"tenant"`
	Roles   []string  `json:"roles"`
	May     []string  `json:"may"`              // watch, act, operate
	Expires time.Time `json:"expires,omitzero"` // end of the credential; absent: never
}
