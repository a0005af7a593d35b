package binding

import (
	"context"
	"net/url"
	"time"

	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Close codes of RFC 6455, section 7.4.1, for Connection.Finish.
const (
	ClosePolicy   = 1008
	CloseInternal = 1011
)

// Connection is a client's connection, as its binding sees it. All methods may be called
// concurrently from Begin on, except for Rated, which the handler of messages calls.
type Connection interface {
	// Transport: End tells the client of the fault first where the close code does not say
	// all of it.
	transport.Transport
	Socket
	Intake

	// Client is who is connected: what it may do and see.
	Client() *edge.Client
	// Context is the life of the work that is done for the connection. Its cause is a
	// *fault.Fault where the gateway ended it.
	Context() context.Context
	// Query returns the parameters of the request.
	Query() url.Values
	// FaultOf returns the part of an error that the client may see.
	FaultOf(err error) *fault.Fault
	// Tell shows a fault in the dialect.
	Tell(f *fault.Fault)
}

// Socket is the part of a connection that knows its WebSocket.
type Socket interface {
	// Finish ends the connection with a close code and a reason, after all that is queued.
	Finish(code int, reason string)
	// Ping sends a ping and returns false if the client has not answered the one before.
	Ping(payload []byte) bool
	// Silence returns the time since the client's last sign of life.
	Silence() time.Duration
	// Slot is the room of the connection for stored data.
	Slot() *stream.Slot
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
