// Package event defines the canonical event of Waggle: logs store it, the bus announces it and every dialect
// translates it.
//
// An event is one self-describing JSON object with the attribute names of CloudEvents 1.0, so that a program which
// knows only NATS can rebuild a run.
//
// An event bounds every text, because it is one message of JetStream, and readers never join parts of a completed text: a
// longer answer of a model ends with the stop reason length, a longer tool result has a mark of truncation, a longer
// message is refused. Large data of tasks are objects (internal/payload).
package event

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// SpecVersion is the CloudEvents version of every event.
const SpecVersion = "1.0"

// Headers of a stored or announced event. They let programs process it without parsing the body.
const (
	HeaderMsgID     = "Nats-Msg-Id"
	HeaderSeq       = "Waggle-Seq"
	HeaderType      = "Waggle-Type"
	HeaderStreamSeq = "Waggle-Stream-Seq" // announcements only: where the event is stored
)

// Event is one entry of a log.
//
// Sequence is dense within its log: 1, 2, 3, ... It is 0 until the event has
// been appended. Data is the JSON form of the type's data struct; members that
// the struct does not know survive, because Data is never re-encoded.
type Event struct {
	SpecVersion string          `json:"specversion"`           // always 1.0
	ID          string          `json:"id"`                    // unique in the log; the same when a writer tries again
	Source      string          `json:"source"`                // the process that appended it
	Type        Type            `json:"type"`                  // see the types below
	Subject     string          `json:"subject"`               // the log: tenant.kind.id
	Time        time.Time       `json:"time"`                  // when it happened; UTC, milliseconds
	Sequence    uint64          `json:"sequence"`              // position in the log: 1, 2, 3, ...
	Data        json.RawMessage `json:"data"`                  // depends on the type
	TraceParent string          `json:"traceparent,omitempty"` // W3C trace context
	Request     string          `json:"request,omitempty"`     // of a participant; the event carries it out and answers a repeat of it

	Stream uint64 `json:"-"` // its stream sequence, for readers of a log; 0 = unknown
	Via    Via    `json:"-"` // its origin, for readers of a log that holds events of other logs: see Unwrap
	From   uint64 `json:"-"` // the first sequence of a merged event; 0 or Sequence = not merged
}

// New returns an event of the given log. Sequence is assigned by the append.
// The event's type is that of data.
func New(log subject.Log, eventID, source string, at time.Time, data Data) (Event, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return Event{}, fmt.Errorf("encode data of %s: %w", data.EventType(), err)
	}
	return Event{
		SpecVersion: SpecVersion, ID: eventID, Source: source, Type: data.EventType(),
		Subject: log.Name(), Time: at.UTC().Truncate(time.Millisecond), Data: raw,
	}, nil
}

// DedupeID returns the Nats-Msg-Id of the event. All logs of a stream share dedupe ids, so it includes the log's
// name.
func (e Event) DedupeID() string { return e.Subject + ":" + e.ID }

// Decode unmarshals the event's data into v, naming the event on failure.
func (e Event) Decode(v any) error {
	if err := json.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("decode data of %s event %s: %w", e.Type, e.ID, err)
	}
	return nil
}

// As decodes the data of e as a T.
func As[T Data](e Event) (T, error) {
	var v T
	err := e.Decode(&v)
	return v, err
}

// Via is the place of an unwrapped event in a team. It is zero for an event of the log itself.
type Via struct {
	Route     string // path of member names from the log's team: backend_team/Coder; of a nested team's own event the team's
	TeamID    string // the innermost team
	AgentID   string // empty for an event of a team
	Status    string // of the agent from now on, if it has changed
	OldStatus string
}
