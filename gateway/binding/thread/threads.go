// Package thread binds HTTP requests to threads of AG-UI: logs of sessions, whose frames depend on what came before. A request
// gets a projection of the log (package dialect/agui) at its position, and a feed that goes on with it.
package thread

import (
	"context"
	"time"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/dialect/agui"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// DefaultPatience is how long a request waits for its command to be taken or refused.
const DefaultPatience = 10 * time.Second

// Threads are the threads of a gateway. All methods are safe for concurrent use.
type Threads struct {
	g        *binding.Gateway
	states   *states
	viewers  *viewers
	patience time.Duration
}

// New returns the threads of a gateway.
func New(g *binding.Gateway, patience time.Duration) *Threads {
	if patience <= 0 {
		patience = DefaultPatience
	}
	return &Threads{g: g, states: newStates(g), viewers: newViewers(g), patience: patience}
}

// Detailed is a fault with more to say.
type Detailed struct {
	*fault.Fault
	Members map[string]any // of the problem document
}

// Unwrap returns the fault.
func (d Detailed) Unwrap() error { return d.Fault }

// Client is the client of a request.
type Client interface {
	binding.Identified
	// Command sends commands for the principal, if it may act.
	Command(ctx context.Context, replyTo string, cmds ...command.Command) error
	// Room takes room for so many bytes of answers that are larger than small ones, and waits for it a little. Its part is nil
	// for a small one.
	Room(ctx context.Context, bytes int) (Part, error)
}

// Part is the room of one answer. Only one goroutine may use it.
type Part interface {
	// Shrink gives up what the answer does not need any more.
	Shrink(bytes int)
	// Leave gives up all, once.
	Leave()
}

// Place is the thread that a request is about.
type Place struct {
	Log     subject.Log
	Name    string // as the client writes it
	Variant agui.Variant
	To      Response // nil for requests without a stream
}

// Response is what a stream is shown on.
type Response interface {
	transport.Transport
	// Code returns the code of the fault that the response ends with, empty while it is open and after a client that has gone.
	Code() fault.Code
	// Written has f called once all that is queued has been written, or the response is over.
	Written(f func())
}

// exists returns the end of the thread's log. A thread that the client does not see does not exist.
func (t *Threads) exists(ctx context.Context, c Client, at Place) (last eventlog.Cursor, err error) {
	if last, err = t.end(ctx, c, at); err == nil && last.Seq == 0 {
		err = fault.New(missing(at))
	}
	return last, err
}

// missing is the fault of a thread that does not exist.
func missing(at Place) fault.Code {
	if at.Log.Kind == id.KindTeam {
		return fault.TeamNotFound
	}
	return fault.SessionNotFound
}

// end returns the end of the thread's log, zero for a thread without events.
func (t *Threads) end(ctx context.Context, c Client, at Place) (last eventlog.Cursor, err error) {
	if !c.Principal().Owns(at.Log) {
		return last, fault.New(missing(at))
	}
	if last, err = t.g.Log.Last(ctx, at.Log); err != nil || last.Seq == 0 {
		return last, err
	}
	seen, err := t.g.Sight.Sees(ctx, c.Principal(), at.Log)
	if err == nil && !seen {
		err = fault.New(missing(at))
	}
	return last, err
}
