package dialect

import (
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Peers is implemented by codecs of sockets on which one participant of a swarm
// speaks: a client, an agent or a service. The socket of a client shows the client's
// log; the others get direct messages only. Frames become orders, which the gateway
// carries out in their order.
type Peers interface {
	// Name is short, constant and unique among all codecs.
	Name() string

	// Kind is command.PeerClient, PeerAgent or PeerService.
	Kind() string

	// Welcome returns the first frame of a socket. Of a client, opened says which
	// inbox it has.
	Welcome(at Link, opened *command.OpenClientReply) []byte

	// Orders turns a frame into what it asks of the gateway. The rules for frame and
	// error are those of Codec.Decode; requestID is what an error answers to, as far
	// as it can be made out. An error that the peer is not told of is Dropped.
	Orders(frame []byte, in PeerInbound) (orders []Order, requestID string, err error)

	// Oversized turns a frame that is larger than one may be into orders. It asks for
	// nothing but for the failure of the task or the call that it ends; otherwise the error
	// says that it is too large. The rules are those of Orders.
	Oversized(frame Torn, in PeerInbound) (orders []Order, requestID string, err error)

	// Encode turns an event of the client's log, or a direct message, into frames. Events of
	// a log give the same bytes for every socket.
	Encode(e event.Event) [][]byte

	// Repeat returns what is said once more, a moment after the frames of an event of the
	// client's log: it is not part of the event, has no position, and may get lost.
	Repeat(e event.Event) [][]byte

	// Answer turns the reply to an order into frames.
	Answer(at Link, o Order, reply json.RawMessage) [][]byte

	// Refuse returns the frame that tells of a fault of the frame with the id.
	Refuse(at Link, requestID string, f *fault.Fault) []byte

	// Ping returns the frame that asks the peer for a sign of life, nil where the
	// protocol has none and pings of WebSocket do.
	Ping(at Link) []byte
}

// PeerInbound is what a codec may know about the socket on which a frame arrived.
type PeerInbound struct {
	Peer     command.Peer                                   // as registered; Online is false before
	OnlyTask string                                         // the one task that was handed to the agent here and is not over; empty if none or several
	OnlyCall string                                         // the one call that the service was handed here and that is not over; empty if none or several
	LastTask string                                         // of the open tasks the one that was last spoken of here, by either side; empty if the agent has none
	Placed   func(request string) (task string, known bool) // to which task a request was given before that names none; nil = none was
	Watched  subject.Log                                    // the run that the socket shows beside the client's log; zero if none
	NewID    func() string
	Now      time.Time
}

// Torn is what is there of a frame that is larger than one may be.
type Torn struct {
	Head, Tail  []byte // its first and its last bytes, which do not overlap
	Size, Limit int64  // how many bytes it has, and may have
}

// Order is one thing that a frame asks of the gateway. Exactly one of its kinds is set.
type Order struct {
	RequestID string             // of the frame, to which the answer refers
	Type      string             // of the frame, for Answer
	Words     command.Vocabulary // of the frame, for Answer; empty = it does not say

	Intent   *Intent       // carry it out in the log of the Task, or of the watched run
	Ask      Inquiry       // ask it and answer with what comes back
	Register *command.Peer // take or change the peer's place in the directory, then Answer with the peer
	Forward  *Forward      // hand on what a service says about a call
	Frames   [][]byte      // frames to be sent back at once
	Leave    bool          // the peer says goodbye: it does not keep its tasks. Its socket stays

	Task string // of Intent: the task that it is about, as the peer knows it; empty = the watched run

	Placed *Placement // it names no task; the gateway remembers which one was meant, for a repeat

	Unanswered bool // the peer waits for no answer: that the order fails it is not told
	Heartbeat  bool // of Frames: a sign of life, which does not wait for what was asked before
}

// Placement is the task to which a request was given that names none; empty = to none.
type Placement struct{ Request, Task string }

// Dropped is why a frame has no effect whose sender waits for no answer: the gateway
// counts the frame, and the peer is told nothing. One without which the peer cannot go on
// ends its socket.
type Dropped struct {
	Err  error
	Ends bool
}

// Error implements error.
func (d Dropped) Error() string { return d.Err.Error() }

// Unwrap returns the fault.
func (d Dropped) Unwrap() error { return d.Err }

// Forward is what a service says about a call that it was given.
type Forward struct {
	CallID       string
	Request      string // of the frame: what comes again under it is not handed on again; empty = it is another one each time
	Final        bool
	Result       json.RawMessage         // final
	Failure      *fault.Fault            // final: the service reports an error
	Notification *event.CallNotifiedData // not final
}
