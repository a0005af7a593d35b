package dialect

import (
	"encoding/json"
	"net/url"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Sessions is implemented by codecs of dialects in which one socket holds several
// sessions and every frame names its own. The gateway then makes no session when a
// socket opens; frames ask for one.
//
// An event gives at most one frame, so that the seq of any frame is a safe place to
// resume. All events but parts of texts give one. Events with sequence 0 are direct messages:
// their frames carry no seq and no event_id.
type Sessions interface {
	Codec

	// Request says which session a frame is about and what it asks of the gateway.
	// The rules for frame and error are those of Decode, which is called afterwards
	// for an Act, with the session's log in Inbound. With an error it returns the action
	// and the session as far as they are known: an Ack that cannot be read is dropped,
	// anything else refused.
	Request(frame []byte) (Request, error)

	// In returns the variant of the codec for texts in the language (zh_CN, en, en-GB),
	// or the codec itself and false without texts. The variants are a fixed set.
	In(language string) (Sessions, bool)

	// Gathers returns which parts of texts the variant wants to be put together, as far
	// as they come soon after each other: several deltas of one message as one event
	// (Event.From). nil means none. A part for which it reports true has a frame.
	Gathers() func(event.MessageDeltaData) bool

	// Connected returns the frame that greets a socket.
	Connected(at Link) []byte

	// Heartbeat returns the frame that says that the server lives. session is empty
	// for a socket without one; seq is the newest of the session.
	Heartbeat(at Link, session string, seq uint64) []byte

	// Refuse returns the frame that tells the client of a fault of one of its
	// frames. session is what the frame named, if anything; asked says what for.
	Refuse(at Link, session string, asked Action, f *fault.Fault) []byte

	// Expired tells a returning client that what it asked for begins at first.
	Expired(at Link, session string, first uint64) []byte

	// Replayed closes a replay: count events up to seq have been shown. matched
	// says whether the client's hash of the state is right, nil if it sent none.
	Replayed(at Link, session string, count int, seq uint64, cursor string, matched *bool) []byte

	// Batch returns one frame that holds the frames of the events, in order. Events
	// without a frame are passed over.
	Batch(at Link, session string, events []event.Event) []byte

	// Restored returns the frame that says that a session whose state was imported is
	// there already: nothing was changed, and no event says it.
	Restored(at Link, session string, state event.SessionRestoredData) []byte

	// Exported returns the frame that holds the exported state of a session.
	Exported(at Link, session string, state event.StateExportedData) []byte
}

// MultiDialect is a dialect whose connections hold several sessions.
type MultiDialect interface {
	Dialect
	// BindSessions is Bind for codecs of several sessions.
	BindSessions(query url.Values) (Sessions, error)
}

// MaxBatch is how many events the frame of a batch holds at most.
const MaxBatch = 200

// Link is what a frame may say of the socket that it goes to.
type Link struct {
	ConnectionID string
	Now          time.Time
	Uptime       time.Duration // of the gateway
}

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
