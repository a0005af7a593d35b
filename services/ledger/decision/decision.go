// Package decision is the contract between reducers, which decide, and the ledger, which appends.
// It holds facts and decisions, and is pure.
package decision

import "github.com/waggle-dev/waggle/proto-schemas/event"

// Fact is the next event of a log: its data, and an id that is the same however often
// the same command is decided.
type Fact struct {
	ID   string
	Data event.Data
}

// Decision is the effect of a command in a state. The ledger appends and folds the facts, and
// decides again until a decision has none; then the command is done. Direct, Request and Again
// count in the first decision about a command only.
type Decision struct {
	Facts   []Fact
	Direct  event.Data // answer for the sender alone, in no log; may be nil, and comes again when the command does
	Request string     // name of the first fact for a sender that repeats itself (event.Event.Request)
	Again   []uint64   // sequences of events of the log that answer such a repeat
}

// Of returns the decision to append the facts.
func Of(facts ...Fact) Decision { return Decision{Facts: facts} }
