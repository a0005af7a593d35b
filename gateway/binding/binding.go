// Package binding defines the thing that a connection is bound to: one session or run
// (package single), several (myagent/sessions), a team or a member of one (team/teams), a
// place in the swarm (asp/participants).
// A binding gets its connection as a Connection and the gateway's shared parts as a
// Gateway. It knows no server, and no other binding.
package binding

import (
	"context"
	"time"

	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Binding decides which messages a connection shows and what those of its client do. Begin,
// Unmetered, Handle, Oversized and Close run one after the other; the other methods run
// concurrently with them and do not block, except for Flush.
type Binding interface {
	// Name is the name of the codec.
	Name() string
	// Begin greets the client, which has been authenticated.
	Begin() error
	// Settle lets the connection take up messages (Connection.TakeUp), unless the binding
	// waits for something of its own.
	Settle()
	// Heartbeat answers a message that asks for a sign of life only, without waiting for
	// the messages before it. It returns false for any other message.
	Heartbeat(message []byte) bool
	// Unmetered handles a message to which no rate and no quota of the connection applies,
	// and which has no answer. It returns false for any other message.
	Unmetered(ctx context.Context, message []byte) bool
	// Handle does the work that a message asks for. It tells the client about its faults;
	// the returned error goes into the trace.
	Handle(ctx context.Context, message []byte) error
	// Oversized handles a message beyond Policy.Limits, of which both ends are kept.
	Oversized(ctx context.Context, o *ws.Oversize) error
	// Room: the queue of the connection has room again.
	Room()
	// Tick runs about once a second.
	Tick(now time.Time)
	// Pong: the client has answered a ping of the binding.
	Pong(payload []byte)
	// Flush sends the acknowledgements that have been collected since the last call.
	Flush(ctx context.Context)
	// Fail returns the frame that tells the client of a fault of the connection, nil
	// where the protocol has none.
	Fail(f *fault.Fault, now time.Time) []byte
	// Close ends the work of the binding. The connection is over.
	Close()
}

// Policy says how a gateway treats the connections of a route.
type Policy struct {
	// Rights says if a principal may open a connection, and if it may do more than watch.
	Rights func(auth.Principal) (enter, act bool)
	// Limits bound the messages of authenticated clients; zero = those of the gateway.
	Limits ws.Limits
	// Slows: the binding limits the rate of messages itself, and a client beyond its
	// quota is read more slowly, instead of being told.
	Slows bool
}

// Viewer is the Rights of a route on which any principal may watch that may see anything.
func Viewer(p auth.Principal) (enter, act bool) { return p.MayWatch(), p.MayAct() }

// Defaults implements the methods of Binding that few bindings need.
type Defaults struct{}

// Heartbeat implements Binding.
func (Defaults) Heartbeat([]byte) bool { return false }

// Unmetered implements Binding.
func (Defaults) Unmetered(context.Context, []byte) bool { return false }

// Oversized implements Binding.
func (Defaults) Oversized(_ context.Context, o *ws.Oversize) error { return o.Fault() }

// Pong implements Binding.
func (Defaults) Pong([]byte) {}

// Flush implements Binding.
func (Defaults) Flush(context.Context) {}
