// Package canonical shows events as they are stored, for readers that know the events of
// Waggle and no other protocol. It is a pure translation, and nothing is said in it.
package canonical

import (
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Names of the messages that stand for no event.
const (
	EventProblem = "problem" // a Problem
	EventGap     = "gap"     // a Gap
)

// Codec encodes events. It is safe for concurrent use.
type Codec struct{}

// shown is an event with the first of the sequences that it stands for, if these are
// several: parts of one text, put together for a reader that is slow.
type shown struct {
	event.Event
	From uint64 `json:"from,omitempty"`
}

// Name returns the name of the codec.
func (Codec) Name() string { return "events" }

// Encode returns the event's JSON, without what only a model's provider may know. Members that this version does not know
// are kept.
func (Codec) Encode(e event.Event) [][]byte {
	s := shown{Event: eventdata.ForPeople(e)}
	if e.From != e.Sequence {
		s.From = e.From
	}
	b, err := eventdata.JSON(s)
	if err != nil {
		panic(fmt.Sprintf("encode event %s: %v", e.ID, err)) // its data was JSON when it was read
	}
	return [][]byte{b}
}

// Fail returns the problem document of a fault.
func (Codec) Fail(f *fault.Fault, _ time.Time) []byte { return encodePlain(ProblemOf(f, 0)) }

// Truncated returns the problem document that tells a reader that the events before first
// have expired.
func (Codec) Truncated(first uint64) []byte {
	return encodePlain(ProblemOf(fault.New(fault.HeadExpired), first))
}

// Problem is a problem document (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"` // the fault's code
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"`
	First  uint64 `json:"first,omitempty"` // of HISTORY_EXPIRED: the sequence of the oldest event that is left
}

// ProblemOf returns the document of a fault. first is 0 but for fault.HeadExpired.
func ProblemOf(f *fault.Fault, first uint64) Problem {
	return Problem{
		Type: "about:blank", Title: string(f.Code), Status: fault.Lookup(f.Code).Status, Detail: f.Public(), Field: f.Field, First: first,
	}
}

// Gap says how many announcements a reader has lost, because it or the gateway was slow.
type Gap struct {
	Dropped int `json:"dropped"`
}

// Encode returns the JSON of the gap.
func (g Gap) Encode() []byte { return encodePlain(g) }

func encodePlain(v any) []byte {
	b, err := plainjson.Marshal(v)
	if err != nil {
		panic(err) // it has texts and numbers
	}
	return b
}
