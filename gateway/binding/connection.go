package binding

import (
	"context"
	"net/url"
	"time"

	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Close codes of RFC 6455, section 7.4.1, for Connection.Finish.
const (
	ClosePolicy   = 1008
	CloseInternal = 1011
)

// MaxCommand is the most bytes that the data of one command may have: it goes into an event
// of at most 256 KiB, with everything else that the event says.
const MaxCommand = 160 << 10

// Connection is a client's connection, as its binding sees it. All methods may be called
// concurrently from Begin on, except for Rated, which the handler of messages calls.
type Connection interface {
	// Transport: End tells the client of the fault first where the close code does not say
	// all of it.
	transport.Transport
	Socket
	Client
	Intake
	Services
	Reporter
}

// Identified has an authenticated user.
type Identified interface {
	// Principal returns the authenticated user.
	Principal() auth.Principal
}

// Socket is the part of a connection that knows its WebSocket.
type Socket interface {
	// Finish ends the connection with a close code and a reason, behind all that is queued.
	Finish(code int, reason string)
	// Ping sends a ping and returns false if the client has not answered the one before.
	Ping(payload []byte) bool
	// Silence returns the time since the client's last sign of life.
	Silence() time.Duration
	// Slot is the room of the connection for stored data.
	Slot() *stream.Slot
	// Questions are those that the connection has shown.
	Questions() *stream.Questions
}

// Client is the part of a connection that knows its client.
type Client interface {
	Identified
	// Context is the life of the work that is done for the connection. Its cause is a
	// *fault.Fault where the gateway ended it.
	Context() context.Context
	// MayAct reports whether the principal may do more than watch.
	MayAct() bool
	// Query returns the parameters of the request.
	Query() url.Values
	// Protocol returns the name of the dialect.
	Protocol() string
}

// Intake is the part of a connection that decides when its messages are handled.
type Intake interface {
	// Greeted starts the wait for services that can answer: the client has been greeted.
	Greeted()
	// Settle calls Binding.Settle if such services run.
	Settle()
	// TakeUp lets messages be handled, after the first call has called welcome.
	TakeUp(welcome func())
	// Await waits until messages are handled, and returns false if the connection ends first.
	Await() bool
	// Rated notes if an unmetered message kept to its rate. A client that floods is cut off.
	Rated(kept bool)
	// AllowHeartbeat applies the rate of pings and pongs to one message.
	AllowHeartbeat() bool
	// Underway counts requests that no later message waits for: a drain does.
	Underway(n int)
}

// Services is the part of a connection that reaches services.
type Services interface {
	// Command sends commands for the principal, if it may act.
	Command(ctx context.Context, replyTo string, cmds ...command.Command) error
	// Acknowledge sends a command that concerns nothing but the client's own position: also
	// a viewer may.
	Acknowledge(ctx context.Context, cmd command.Command) error
}

// Reporter is the part of a connection that tells of faults and actions.
type Reporter interface {
	// FaultOf returns the part of an error that the client may see.
	FaultOf(err error) *fault.Fault
	// Tell shows a fault in the dialect.
	Tell(f *fault.Fault)
	// Record writes an audit record about the connection.
	Record(action id.Name, r audit.Record)
}
