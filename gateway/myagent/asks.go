package myagent

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/command"
)

// Action is what a frame asks of the gateway.
type Action string

// The actions.
const (
	Act    Action = "act"    // carry out the intents that Decode makes of it
	Open   Action = "open"   // make a session and show it
	Resume Action = "resume" // show a session from where the client left it
	Ack    Action = "ack"    // note how far the client has read
	Export Action = "export" // show the state of the session
	Import Action = "import" // restore a session from a signed state and show it
)

// Request is a frame as the gateway sees it. Session is the id as the client wrote
// it, which may be no legal one; empty if the frame names none.
type Request struct {
	Action  Action
	Session string

	Open    command.OpenSession // Open
	Resume  Position            // Resume, Import: where the client left
	Batch   bool                // Resume, Import: many missed events in one frame
	Merge   bool                // Resume, Import: consecutive pieces of a text as one
	Acked   Position            // Ack
	History bool                // Export: with the newest events
	Max     int                 // Export: how many; 0 = the server's choice
	Signed  json.RawMessage     // Import
}

// In reports whether the position is one in the session with the id.
func (p Position) In(session string) bool { return p.Session == "" || p.Session == session }

// Position is where a client stands in a session. EventID wins over Seq; without
// either it is the client's last acknowledged position.
type Position struct {
	Seq      *uint64
	EventID  string // the cursor in it: <seq> or <seq>.<stream seq>
	Session  string // that the event_id names; empty if it names none
	ClientID string
	Hash     string
}
