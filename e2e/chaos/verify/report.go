package verify

import "context"

// Seen is one frame of a log as a client got it.
type Seen struct {
	Seq uint64
	Raw string
}

// Report is what a client has to say when its work is over.
type Report struct {
	Who    string
	Tenant string
	Kind   string // dialect
	Logs   []string
	Seen   []Seen
	Gaps   []string // positions that were left out, came twice or in another order

	Asked   []string       // ids of commands, each of which has to be in a log once
	Ended   map[string]int // how often each unit ended
	Unknown int            // requests that were cut off before they were answered
	Returns int
	Why     []string // connections ended

	// Again returns the frames up to the newest one that the client has seen, as
	// a new viewer gets them.
	Again func(ctx context.Context, addr string) ([]Seen, error)
	// Loose are frames that may be cut differently: pieces of texts. It returns of which
	// text, and the piece.
	Loose func(raw string) (of, text string, loose bool)
	// Refused are requests that were answered with an error, by its code.
	Refused map[string]int
}
