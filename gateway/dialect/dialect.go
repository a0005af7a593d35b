// Package dialect defines what the gateway needs to know of a wire protocol: how
// its frames become intents, and how canonical events become frames.
//
// A dialect is a pure translation. It has no clock, goroutine, network, logger or
// state; ids and times come as arguments. The same event therefore gives the same
// bytes in every gateway, a frame is encoded once for all sockets that watch a log
// in the same dialect, and one log can be watched in several dialects at once.
// dialecttest.Exercise enforces this for every implementation.
//
// The package is not the place for sockets, deadlines, limits or authentication:
// those are the gateway's. The abilities of one protocol alone, such as several sessions on one
// socket, are in its folder.
package dialect

import (
	"net/url"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Inbound is what a codec may know about the connection on which a frame arrived.
type Inbound struct {
	Kind  id.Kind       // of the log that the frame is about
	NewID func() string // returns a fresh id for an intent, legal as a subject token
}

// Stage is a step of the greeting of a new socket.
type Stage int

// The stages, in the order in which a socket passes them. Each is announced once.
const (
	Starting Stage = iota // the socket is open; frames sent now wait
	Ready                 // someone is there to answer; waiting frames are taken up
)

// Greeting says what has become true of a new socket.
type Greeting struct {
	Stage     Stage
	SessionID string    // the id to come back with; known from the first stage on
	Now       time.Time //
	Seq       uint64    // the position of the socket: events after it will be delivered
}

// Link is what a frame may say of the socket that it goes to.
type Link struct {
	ConnectionID string
	Now          time.Time
	Uptime       time.Duration // of the gateway
}

// Codec translates for one variant of a dialect. A codec is an immutable value,
// shared by all sockets of the variant and safe for concurrent use.
type Codec interface {
	// Name is short, constant, and unique among all codecs: it labels metrics and
	// keys frames that are kept with an event ("orbit", "orbit+deltas").
	Name() string

	// Decode turns a frame of the client into intents, in the order in which they are to
	// be carried out. A frame that asks for nothing gives no intents and no error.
	//
	// The frame has passed strictjson.Check: it is one JSON value, UTF-8, without
	// duplicate keys. The error is always a *fault.Fault and says what the client
	// can do; no intent is carried out then. Decode does not keep frame.
	Decode(frame []byte, in Inbound) ([]Intent, error)

	// Encode turns an event into frames, each one JSON text. None is a normal
	// answer: not every event can be said in every dialect. The same event gives
	// the same bytes, whatever was encoded before. Frames carry the event's
	// sequence where the dialect has a place for it, so that the last one a client
	// saw is where it resumes. The log may be of any kind: what the dialect has no word
	// for it says in its nearest form, and never drops a question, a failure or a final
	// answer. Events of other logs that a team's log holds are unwrapped
	// (event.Unwrap). The caller must not modify the frames.
	Encode(e event.Event) [][]byte

	// Greet returns the frames for a stage of a new socket.
	Greet(g Greeting) [][]byte

	// Fail returns the frame that tells the client of a fault which belongs to the
	// connection or to one of its frames, not to the log. It shows nothing but
	// f's public parts.
	Fail(f *fault.Fault, now time.Time) []byte

	// Truncated returns the frame that tells a resuming client that the history
	// before the event with sequence first has expired. Events from first on follow.
	Truncated(first uint64, now time.Time) []byte
}

// Dialect is one protocol, served under one path.
type Dialect interface {
	// Name is the name of the protocol, for logs and for session.created.
	Name() string

	// Bind returns the codec for a socket opened with the query. It returns one of
	// a fixed set of codecs and does not allocate one for each socket. Parameters
	// that the dialect does not know are passed over. The error is always a
	// *fault.Fault that names the parameter.
	Bind(query url.Values) (Codec, error)
}
